package several

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
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
		p.AnswerError(scriptOn(Vote), 1<<30, "upstream failure")
	}, []string{"upstream failure"}},
	"denies": {func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) {
		p.AnswerError(scriptOn(Vote), 1<<30, "NOPERM no permission")
	}, []string{"NOPERM no permission"}},
	"held": {func(t *testing.T, srv *redistest.Server, _ *redistest.Proxy) {
		mustLock(t, managerOn(t, srv).Mutex(Vote))
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
			c, proxies := all.candidateVia(t)
			for i, name := range tc.members {
				deeds[name].begin(t, all[i], proxies[i])
			}
			// At first the client may repeat a request by itself, so that the caller sees a silence.
			var err error
			redistest.Eventually(t, patience, "TryLock tells what each did", func() bool {
				_, err = c.TryLock(t.Context())
				return errors.Is(err, tc.is) && untold(err, tc.members) == ""
			})
			if tc.waits == nil {
				return
			}
			cause := errors.New("the caller has enough")
			redistest.Eventually(t, patience, "Lock tells what each did", func() bool {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, cause)
				defer cancel()
				_, err = c.Lock(ctx)
				wantErr(t, err, cause, nil)
				wantErr(t, err, context.DeadlineExceeded, nil)
				return errors.Is(err, tc.waits) && untold(err, tc.members) == ""
			})
		})
	}
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

// The error says what each member did, and nothing twice.
func TestRedlock_ErrorsSayWhatEachMemberDid(t *testing.T) {
	all := Servers(t, 3)
	p := all[1].Proxy(t)
	c, other := CandidateOn(t, []*redis.Client{all[0].Client(t), p.Client(t), all[2].Client(t)}, Mutexes), all.Candidate(t)
	all.greet(t, c)
	held := mustLock(t, other.Managers[2].Mutex(Vote))
	p.BlackHole(true)
	_, err := c.TryLock(t.Context())
	wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
	wantLines(t, err, "member 2 of 3: no answer in ", "member 3 of 3: held by another owner")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Lock(ctx)
	wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
	wantErr(t, err, context.DeadlineExceeded, nil)
	wantLines(t, err, "member 2 of 3: no answer in ", "member 3 of 3: held by another owner")

	all[0].Kill()
	redistest.Eventually(t, patience, "it is known to be dead", func() bool {
		_, err = c.TryLock(t.Context())
		return errors.Is(err, holdfast.ErrUnavailable) && errors.Is(err, syscall.ECONNREFUSED)
	})
	wantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
	wantLines(t, err, "member 1 of 3: dial tcp ", "member 2 of 3: no answer in ")
	mustUnlock(t, held)

	for _, srv := range all[1:] {
		srv.Admin().Set(t.Context(), "x", "no lock", 0)
	}
	p.Heal()
	wrong, err := holdfast.NewRedlock(c.Managers[0].Mutex("x"), c.Managers[1].Mutex("x"), c.Managers[2].Mutex("x"))
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, patience, "its connections work again", func() bool {
		_, err = wrong.TryLock(t.Context())
		return errors.Is(err, holdfast.ErrWrongKind)
	})
	wantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrNotAcquired)
	wantLines(t, err, "member 2 of 3: the key x holds a string", "member 3 of 3: the key x holds a string")
}

// wantLines checks that err says each of some things once.
func wantLines(t *testing.T, err error, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err == nil || strings.Count(err.Error(), line) != 1 {
			t.Errorf("%v does not say %q once", err, line)
		}
	}
}
