package holdfastgocron

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// ErrNotLeader is the error of [Elector.IsLeader] in a replica that does not lead.
var ErrNotLeader = errors.New("holdfastgocron: this replica does not lead")

// campaignAgain is the pause after a campaign that has failed for a reason that waiting alone does not mend.
const campaignAgain = time.Second

// Elector says whether this replica leads, for [gocron.WithDistributedElector].
type Elector struct {
	stop   context.CancelFunc
	term   atomic.Pointer[holdfast.Term] // nil: this replica does not lead
	failed atomic.Pointer[error]         // of the last campaign; nil: none has failed since this replica led
	ended  chan struct{}                 // closed when the campaign is over
	err    error                         // of the release; may be read when ended is closed
}

// NewElector campaigns in the background until ctx ends, or until [Elector.Close]. value is what [holdfast.Election.Leader]
// says of this replica while it leads, such as the name of its host.
//
// A replica that loses its lease campaigns again. So does one whose campaign has failed, after a second.
func NewElector(ctx context.Context, e *holdfast.Election, value string) *Elector {
	ctx, stop := context.WithCancel(ctx)
	el := &Elector{stop: stop, ended: make(chan struct{})}
	go el.campaign(ctx, e, value)
	return el
}

// IsLeader returns nil if this replica leads, and otherwise [ErrNotLeader], which wraps the error of a campaign that has failed.
// It does no I/O, and becomes false a tenth of the lease before another replica can lead.
func (el *Elector) IsLeader(context.Context) error {
	if t := el.term.Load(); t != nil && t.Lease().Valid() {
		return nil
	}
	if err := el.failed.Load(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotLeader, *err)
	}
	return ErrNotLeader
}

// Close ends the campaign, resigns if this replica leads, and waits for both. After the end of NewElector's context it only
// waits. It returns [holdfast.ErrNotReleased] if Redis has not confirmed that: another replica leads when the lease has run out.
// Close may be called more than once. Shut the scheduler down first, so that no job of this replica runs beside the next leader.
func (el *Elector) Close() error {
	el.stop()
	<-el.ended
	return el.err
}

func (el *Elector) campaign(ctx context.Context, e *holdfast.Election, value string) {
	defer close(el.ended)
	defer el.stop()
	for {
		err := e.Lead(ctx, value, el.lead)
		if ctx.Err() != nil {
			if errors.Is(err, holdfast.ErrNotReleased) {
				el.err = err
			}
			return
		}
		if err != nil {
			el.failed.Store(&err)
		}
		select {
		case <-time.After(campaignAgain):
		case <-ctx.Done():
		}
	}
}

func (el *Elector) lead(ctx context.Context, t *holdfast.Term) error {
	el.failed.Store(nil)
	el.term.Store(t)
	<-ctx.Done()
	el.term.Store(nil)
	return nil
}
