package command

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkFor is for how long replies are checked after one that cannot be right. A reply too many stays on its connection,
// and go-redis finds it there when the next batch takes the connection, unless it comes later than that. So checkFor is
// longer than a reply is on its way.
const checkFor = 10 * time.Second

// checks has each command of a batch followed by a check, for some time after replies were out of order: a script that returns
// a text of its own. On a connection that is off by one, the check gets the reply to the command, and the next command gets the
// text, which is a reply of none of Holdfast's scripts. That holds for what such a batch leaves on the connection as well.
type checks struct {
	until atomic.Int64 // nanoseconds since 1970; 0: replies were never out of order
	sent  atomic.Uint64
}

// check is one of them.
type check struct {
	once
	text string
}

func (c *checks) begin(now time.Time) { c.until.Store(now.Add(checkFor).UnixNano()) }

// of returns a check for each of a batch's bundles; nil: none is needed. again is that of their commands.
func (c *checks) of(batch []bundle, now time.Time, again bool) []check {
	if now.UnixNano() >= c.until.Load() {
		return nil
	}
	all := make([]check, len(batch))
	for i, b := range batch {
		text := "check " + strconv.FormatUint(c.sent.Add(1), 10)
		all[i] = check{once{Cmd: *redis.NewCmd(context.Background(), "eval", "return ARGV[1]", 1, b.calls[0].key(), text), again: again}, text}
		all[i].SetFirstKeyPos(argFirstKey)
	}
	return all
}

// misplaced reports whether a check got what is not its text. An error says nothing.
func misplaced(all []check) bool {
	for i := range all {
		if value, err := all[i].result(); err == nil && value != nil && value != all[i].text {
			return true
		}
	}
	return false
}
