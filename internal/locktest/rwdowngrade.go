package locktest

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// downgradeOf matches the downgrade of a lock, which is a release of its writer that says a TTL behind how to hand over.
func downgradeOf(key string) redistest.Match {
	release := releaseOf(key)
	return func(cmd []string) bool {
		_, argv, _ := redistest.ScriptCall(cmd)
		return release(cmd) && len(argv) > 3 && !strings.HasSuffix(argv[0], ":write") && argv[3] == milliseconds(lease)
	}
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// bothSides takes both sides under one owner and returns their leases.
func (e *Env) bothSides(l *holdfast.RWMutex) (write, read *holdfast.Lease) {
	e.Helper()
	write = e.MustLock(l)
	read, err := l.RLock(write.Context(bg))
	redistest.Must(e, err)
	return write, read
}

// readHeld fails unless the lock is held in read mode, by n readers.
func (e *Env) readHeld(n int) {
	e.Helper()
	mode := e.srv.Admin().HGet(bg, e.Key, "mode").Val()
	holders := e.Holders()
	for id := range holders {
		if strings.HasSuffix(id, ":write") {
			e.Errorf("%s is still there", id)
		}
	}
	if mode != "read" || len(holders) != n || len(e.Rights()) != n {
		e.Errorf("mode %q, holders %v, rights %v", mode, holders, e.Rights())
	}
}

var rwDowngradeScenarios = map[string]func(*Env){
	// AC-68, AC-73: readers everywhere are woken, Redisson's as well; writers are not.
	"ReadersComeInAndWritersDoNot": func(e *Env) {
		m, other := e.Manager(byMessage...), e.Manager(byMessage...)
		l := e.RW(m)
		write, read := e.bothSides(l)
		remote := e.InQueue(1, e.RW(other).RLocker())
		local := e.Parking(m, 1, l.RLocker())
		sub := e.srv.Client(e).Subscribe(bg, e.Channel(e.Key))
		defer sub.Close()
		redistest.Must(e, ErrOf(sub.Receive(bg)))
		e.MustUnlock(write)
		in := e.Soon("a reader of another manager", remote)
		redistest.Want(e, redistest.Next(e, sub.Channel(), "Redisson's readers are not told").Payload, "1", "message %q")
		here := e.Soon("a reader of this one", local)
		e.readHeld(2)
		e.Busy(e.RW(other).TryLock)
		e.Busy(l.TryLock)
		e.MustUnlock(in, here)
		redistest.Want(e, read.Valid(), true, "the read right is gone")
		e.MustUnlock(read)
		sub.Close()
		e.Clean(m)
		e.Clean(other)
	},

	// A writer of the process, which stood behind the one before it and not in Redis, asks at once.
	"WriterBehindStandsInTheQueue": func(e *Env) {
		m := e.Manager(byMessage...)
		l := e.RW(m)
		held := e.MustLock(e.RW(e.Manager(byMessage...)))
		first := l.LockAsync(bg)
		e.Queued(1)
		e.Listening(1)
		polls := m.Stats().Polls // while it did not hear, it asked often
		second := e.Parking(m, 2, l)
		e.MustUnlock(held)
		write := (<-first).Lease
		read := Got(e, l.RLock, write.Context(bg))
		e.MustUnlock(write)
		e.Queued(1)
		redistest.Want(e, m.Stats().Polls-polls, 0, "it stands there behind %d polls")
		e.Passes(read, "the writer", second)
		e.Clean(m)
	},

	// The right that is left is renewed for as long as it is held, and then free.
	"IsRenewed": func(e *Env) {
		m := e.Manager()
		l := e.RW(m)
		write, read := e.bothSides(l)
		e.MustUnlock(write)
		e.readHeld(1)
		waiting := e.InQueue(1, e.RW(e.Manager()))
		for end := time.Now().Add(2 * lease); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if ttl := e.PTTL(); ttl < lease/4 || !read.Valid() {
				e.Fatalf("TTL %v, valid %v", ttl, read.Valid())
			}
		}
		e.readHeld(1)
		e.Passes(read, "the writer", waiting)
		e.Clean(m)
	},

	// The whole ladder under one owner; the write side lasts until its last lease ends.
	"HappensWithTheLastWriteLease": func(e *Env) {
		m := e.Manager()
		l := e.RW(m, holdfast.WithFencing())
		write, read := e.bothSides(l)
		again, err := l.Lock(read.Context(bg))
		redistest.Must(e, err)
		e.MustUnlock(write)
		e.Busy(e.RW(e.Manager()).TryRLock)
		waiting := e.Parking(m, 1, l.RLocker())
		e.MustUnlock(again)
		joined := e.Soon("the reader", waiting)
		e.readHeld(2)
		_, err = l.Lock(read.Context(bg))
		e.WantErr(err, holdfast.ErrWouldDeadlock)
		if read.Token() != write.Token() || read.Token() == 0 {
			e.Errorf("tokens %d, %d", write.Token(), read.Token())
		}
		if joined.Token() <= write.Token() {
			e.Errorf("a reader whom the writer has excluded has token %d, and the writer %d", joined.Token(), write.Token())
		}
		if with := e.MustRLock(l); with.Token() != joined.Token() {
			e.Errorf("readers that share a hold have tokens %d, %d", with.Token(), joined.Token())
		} else {
			e.MustUnlock(with)
		}
		e.MustUnlock(joined, read)
		next := e.MustLock(l)
		if next.Token() <= read.Token() {
			e.Errorf("token %d after %d", next.Token(), read.Token())
		}
		e.MustUnlock(next)
		e.Clean(m, Tokens)
	},

	// A write lease is not cut by the read release of its owner (Redisson cuts it to what
	// the other read holds have left).
	"ReadReleaseLeavesTheWriteSide": func(e *Env) {
		m := e.Manager()
		l := e.RW(m)
		write, read := e.bothSides(l)
		two := Got(e, l.RLock, write.Context(bg))
		e.MustUnlock(read, two)
		if n := e.Holders(); len(n) != 1 || len(e.Rights()) != 0 {
			e.Errorf("holders %v, rights %v", n, e.Rights())
		}
		for end := time.Now().Add(2 * lease); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if ttl := e.PTTL(); ttl < lease/4 || !write.Valid() {
				e.Fatalf("TTL %v, valid %v", ttl, write.Valid())
			}
		}
		e.Busy(e.RW(e.Manager()).TryRLock)
		e.MustUnlock(write)
		e.Clean(m)
	},
}
