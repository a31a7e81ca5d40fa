package several

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// deeds are what a member of a Redlock can do to a caller, and what errors say of it.
var deeds = map[string]struct {
	begin func(*testing.T, *redistest.Server, *redistest.Proxy)
	says  []string // one of these
}{
	"refuses": {func(_ *testing.T, srv *redistest.Server, p *redistest.Proxy) { srv.Kill(); p.Refuse(true); p.Cut() }, []string{"EOF", "connection reset by peer"}},
	"silent":  {func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) { p.BlackHole(true) }, []string{"no answer in "}},
	"late":    {func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) { p.Delay(time.Minute, 0) }, []string{"no answer in "}},
	"fails": {func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) {
		p.AnswerError(locktest.ScriptOn(Vote), 1<<30, "upstream failure")
	}, []string{"upstream failure"}},
	"denies": {func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) {
		p.AnswerError(locktest.ScriptOn(Vote), 1<<30, "NOPERM no permission")
	}, []string{"NOPERM no permission"}},
	"held": {func(t *testing.T, srv *redistest.Server, _ *redistest.Proxy) {
		locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex(Vote))
	}, []string{"held by another owner"}},
	"wrong": {func(t *testing.T, srv *redistest.Server, _ *redistest.Proxy) {
		srv.Admin().Set(t.Context(), Vote, "no lock", 0)
	}, []string{"the key vote holds a string"}},
	// It grants its vote, unless the others have decided before it can.
	"well": {func(*testing.T, *redistest.Server, *redistest.Proxy) {}, []string{"", "not waited for"}},
}

// AC-82: the error says what each member did that has not granted its vote, each once: at once, and to a caller whose
// ctx ends while the caller waits or members are being asked.
func TestRedlock_ErrorsTellOfEachMember(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		members []string
		is      error // of TryLock
		waits   error // of Lock, when its ctx has ended; nil: it does not wait
	}{
		{[]string{"held", "held", "well"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"held", "well", "held", "held", "well"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"refuses", "held", "well"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"silent", "held", "well"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"well", "late", "held"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"held", "well", "fails"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"denies", "held", "well"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"held", "wrong", "well"}, holdfast.ErrNotAcquired, holdfast.ErrNotAcquired},
		{[]string{"refuses", "silent", "fails"}, holdfast.ErrUnavailable, holdfast.ErrUnavailable},
		{[]string{"fails", "well", "fails"}, holdfast.ErrUnavailable, holdfast.ErrUnavailable},
		{[]string{"silent", "late", "well"}, holdfast.ErrUnavailable, holdfast.ErrUnavailable},
		{[]string{"wrong", "silent", "held"}, holdfast.ErrUnavailable, holdfast.ErrUnavailable},
		{[]string{"wrong", "refuses", "held", "fails", "denies"}, holdfast.ErrUnavailable, holdfast.ErrUnavailable},
		{[]string{"wrong", "well", "wrong"}, holdfast.ErrWrongKind, nil},
	} {
		t.Run(strings.Join(tc.members, ", "), func(t *testing.T) {
			t.Parallel()
			all := Servers(t, len(tc.members))
			c, proxies := all.candidateVia(t, Mutexes)
			for i, name := range tc.members {
				deeds[name].begin(t, all[i], proxies[i])
			}
			// At first the client may repeat a request by itself, so that the caller sees a silence.
			var err error
			redistest.Eventually(t, locktest.Patience, "TryLock tells what each did", func() bool {
				_, err = c.TryLock(t.Context())
				return errors.Is(err, tc.is) && untold(err, tc.members) == ""
			})
			locktest.WantErr(t, err, tc.is, beside(tc.is))
			if tc.waits == nil {
				return
			}
			cause := errors.New("the caller has enough")
			redistest.Eventually(t, locktest.Patience, "Lock tells what each did", func() bool {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, cause)
				defer cancel()
				_, err = c.Lock(ctx)
				locktest.WantErr(t, err, cause, nil)
				locktest.WantErr(t, err, context.DeadlineExceeded, nil)
				return errors.Is(err, tc.waits) && untold(err, tc.members) == ""
			})
			locktest.WantErr(t, err, tc.waits, beside(tc.waits))
		})
	}
}

// beside is the sentinel that an error of a Redlock does not match beside another one, whatever its members say.
func beside(sentinel error) error {
	if sentinel == holdfast.ErrNotAcquired {
		return holdfast.ErrUnavailable
	}
	return holdfast.ErrNotAcquired
}

// untold returns what is missing in what err says of members, or said twice; "" if nothing is.
func untold(err error, members []string) string {
	_, said, _ := strings.Cut(err.Error(), "member ")
	of := make(map[string]string)
	for _, line := range strings.Split("member "+said, "; ") {
		member, text, _ := strings.Cut(line, ": ")
		if _, twice := of[member]; twice {
			return member + " twice"
		}
		of[member] = text
	}
	for i, name := range members {
		member, told := fmt.Sprintf("member %d of %d", i+1, len(members)), false
		for _, says := range deeds[name].says {
			told = told || says == "" && of[member] == "" || says != "" && strings.Contains(of[member], says) && strings.Count(err.Error(), says) <= len(members)
		}
		if !told {
			return member
		}
	}
	return ""
}
