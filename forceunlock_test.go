package holdfast_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// wantNotFreed fails unless ForceUnlock of "a" ends with an error that is is and says text, and the lock of held is as
// it was.
func wantNotFreed(t *testing.T, srv *redistest.Server, m *holdfast.Manager, held *holdfast.Lease, is error, text string) {
	t.Helper()
	before := srv.Keys()
	freed, err := m.ForceUnlock(context.Background(), "a")
	if wantErr(t, err, is, nil); freed || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("freed %v, %v does not say %q", freed, err, text)
	}
	redistest.Eventually(t, patience, "nothing is under way", func() bool { return m.Pending() == 0 && m.Stats().Locks == 0 })
	if after := srv.Keys(); len(after) != len(before) || srv.Admin().HLen(t.Context(), "a").Val() != 1 || held.Err() != nil {
		t.Errorf("keys %q became %q, the lease: %v", before, after, held.Err())
	}
}

// The user may run no scripts, or not the command in one that frees the lock.
func TestForceUnlock_Denied(t *testing.T) {
	srv := redistest.Start(t)
	held := mustLock(t, managerOn(t, srv).Mutex("a"))
	client, allow := limitedOn(t, srv)
	m, err := holdfast.New(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	allow("-evalsha", "-eval")
	wantNotFreed(t, srv, m, held, holdfast.ErrUnavailable, "NOPERM")
	allow("+evalsha", "+eval", "-del")
	wantNotFreed(t, srv, m, held, holdfast.ErrUnavailable, "") // the words depend on the version
	allow("+del")
	if freed, err := m.ForceUnlock(t.Context(), "a"); !freed || err != nil {
		t.Errorf("with all rights: %v, %v", freed, err)
	}
}

// A replica may not have what is locked: it is asked for nothing, and says nothing of a free lock either.
func TestForceUnlock_OnAReplica(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		held := mustLock(t, managerOn(t, srv).Mutex("a"))
		m := managerOn(t, srv)
		if err := srv.Admin().Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
			t.Fatal(err)
		}
		wantNotFreed(t, srv, m, held, holdfast.ErrUnavailable, "READONLY")
		freed, err := m.ForceUnlock(t.Context(), "free")
		if wantErr(t, err, holdfast.ErrUnavailable, nil); freed {
			t.Error("a lock that nobody holds was freed")
		}
		if err := srv.Admin().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, held)
	})
}

func TestForceUnlock_Closed(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		held := mustLock(t, managerOn(t, srv).Mutex("a"))
		m, client := managerOf(t, srv)
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		ends(t, "ForceUnlock", func() error { _, err := m.ForceUnlock(context.Background(), "a"); return err })
		wantNotFreed(t, srv, m, held, holdfast.ErrUnavailable, "closed")
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantNotFreed(t, srv, m, held, holdfast.ErrClosed, "")
		mustUnlock(t, held)
	})
}

// ForceUnlock tells 64 waiters at most. Behind as many that have died a live one is not told, and finds out by asking.
func TestForceUnlock_BehindACrowdOfTheDead(t *testing.T) {
	const n, most = 200, 64
	for name, lock := range map[string]func(*holdfast.Manager) holdfast.Locker{
		"mutex": func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") },
		"fair":  func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("a") },
		"write": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") },
		"read":  func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a").RLocker() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			crowd := deadOf(name == "write" || name == "read", false)
			other := managerOn(t, srv)
			m, p := managerVia(t, srv)
			held := lock(other)
			if name == "read" {
				held = other.RWMutex("a")
			}
			mustLock(t, held)
			next := waits(t, lock(m))
			queued(t, srv, crowd.queue, 1)
			p.Freeze(true) // or a request of the waiter's would remove the dead before
			mon := srv.Monitor(t)
			crowd.stand(t, srv, n)
			if freed, err := managerOn(t, srv).ForceUnlock(t.Context(), "a"); !freed || err != nil {
				t.Fatalf("%v, %v", freed, err)
			}
			p.Freeze(false)
			mustUnlock(t, next())
			if left := srv.Admin().Exists(t.Context(), "a", crowd.queue, crowd.times).Val(); left != 0 {
				t.Errorf("%d keys are left", left)
			}
			srv.Admin().Echo(t.Context(), "the end")
			mon.Wait(t, "the end", patience)
			told := 0
			for _, line := range mon.Lines() {
				if strings.Contains(line, `lua] "publish" "holdfast_inbox:11111111-`) && strings.Contains(line, `"o `) {
					told++
				}
			}
			if told != most {
				t.Errorf("%d of the dead were told, want %d", told, most)
			}
		})
	}
}
