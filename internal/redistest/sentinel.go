package redistest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// sentinelMaster is what the sentinels call their master.
	sentinelMaster = "holdfast"
	sentinels      = 3
	quorum         = 2
	// downAfter is when a silent server is called dead.
	downAfter = 500 * time.Millisecond
)

// Sentinel is a master with replicas, and three sentinels that watch them, all real
// processes of this test's own.
type Sentinel struct {
	tb       testing.TB
	password string
	nodes    []*Server
	watchers []*Server
}

// StartSentinel starts a master, replicas and sentinels on free loopback ports and waits
// until the sentinels know all servers. Options apply to the master and the replicas.
func StartSentinel(tb testing.TB, replicas int, opts ...ServerOption) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb, password: rand.Text()}
	secret := func(cfg *serverConfig) { cfg.password = s.password }
	master := Start(tb, append([]ServerOption{secret}, opts...)...)
	s.nodes = append(s.nodes, master)
	host, port, _ := net.SplitHostPort(master.addr)
	for range replicas {
		follow := WithArgs("--replicaof", host, port, "--repl-ping-replica-period", "1")
		s.nodes = append(s.nodes, Start(tb, append([]ServerOption{secret, follow}, opts...)...))
	}
	await(tb, "replicas in sync", s.inSync)

	// The last sentinel is slower, so that it is no candidate when the master dies: among
	// three who see it at the same moment votes are split, and that costs seconds.
	after := downAfter
	watch := func(cfg *serverConfig) {
		cfg.password = s.password
		cfg.sentinel = []string{
			fmt.Sprintf("sentinel sentinel-pass %s", s.password), // among themselves
			fmt.Sprintf("sentinel monitor %s %s %s %d", sentinelMaster, host, port, quorum),
			fmt.Sprintf("sentinel auth-pass %s %s", sentinelMaster, s.password),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", sentinelMaster, after.Milliseconds()),
			// An election that failed is repeated after twice this.
			fmt.Sprintf("sentinel failover-timeout %s %d", sentinelMaster, 1500),
		}
	}
	for i := range sentinels {
		if i == sentinels-1 {
			after *= 3
		}
		w := Start(tb, watch)
		s.watchers = append(s.watchers, w)
		s.hurry(w)
	}
	s.AwaitHealthy()
	return s
}

// hurry shortens a sentinel's periods, which are made for data centres: with them every
// fail-over, and every return of a server, takes ten seconds. Before Redis 7 they are
// fixed. A replica is fit for promotion if it was asked within five ping-periods, and while
// the master is down it is asked once a second: with less than 200 ms it is a matter of luck.
func (s *Sentinel) hurry(w *Server) {
	_, err := w.try("sentinel", "debug", "info-period", "200", "ping-period", "250", "ask-period", "100",
		"publish-period", "200", "min-link-reconnect-period", "100", "slave-reconf-timeout", "1000", "election-timeout", "1000")
	if err != nil && w.Major() >= 7 {
		s.tb.Fatalf("redistest: sentinel debug: %v", err)
	}
}

// Nodes returns the master and the replicas, in no particular role.
func (s *Sentinel) Nodes() []*Server { return slices.Clone(s.nodes) }

// Sentinels returns the sentinels. One that is restarted is as slow as usual.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.watchers) }

// Options returns fresh options of a fail-over client: go-redis's defaults, as users
// have them, with addresses and passwords filled in.
func (s *Sentinel) Options() *redis.FailoverOptions {
	opt := &redis.FailoverOptions{MasterName: sentinelMaster, Password: s.password, SentinelPassword: s.password}
	for _, w := range s.watchers {
		opt.SentinelAddrs = append(opt.SentinelAddrs, w.addr)
	}
	return opt
}

// Client returns a new fail-over client with default options, closed at tb's cleanup.
func (s *Sentinel) Client(tb testing.TB) *redis.Client {
	c := redis.NewFailoverClient(s.Options())
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Master returns the server that all running sentinels call master.
func (s *Sentinel) Master() *Server {
	s.tb.Helper()
	var master *Server
	await(s.tb, "agreement about the master", func() (err error) {
		master, err = s.master()
		return err
	})
	return master
}

func (s *Sentinel) master() (*Server, error) {
	var addr string
	for _, w := range s.watchers {
		if !w.running() {
			continue
		}
		reply, err := w.try("sentinel", "get-master-addr-by-name", sentinelMaster)
		if err != nil {
			return nil, err
		}
		pair, ok := reply.([]any)
		if !ok || len(pair) != 2 {
			return nil, fmt.Errorf("no master: %v", reply)
		}
		a := net.JoinHostPort(pair[0].(string), pair[1].(string))
		if addr != "" && a != addr {
			return nil, errors.New("sentinels disagree")
		}
		addr = a
	}
	for _, n := range s.nodes {
		if n.addr == addr {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no server at %q", addr)
}

// AwaitNewMaster waits until the sentinels have replaced old and its successor serves as
// a master, and returns that.
func (s *Sentinel) AwaitNewMaster(old *Server) *Server {
	s.tb.Helper()
	var master *Server
	await(s.tb, "a new master", func() (err error) {
		master, err = s.successor(old)
		return err
	})
	return master
}

// successor returns the master that has replaced old.
func (s *Sentinel) successor(old *Server) (*Server, error) {
	master, err := s.master()
	if err != nil {
		return nil, err
	}
	if master == old {
		return nil, errors.New("still the old one")
	}
	return master, hasRole(master, "master")
}

// Failover asks a sentinel to replace the master, which is alive, and returns the old
// and the new one. The old one is told afterwards, so what is written to it meanwhile
// is lost.
func (s *Sentinel) Failover() (from, to *Server) {
	s.tb.Helper()
	from = s.Master()
	const attempt = 5 * time.Second // a sentinel gives up sooner, if something was too slow
	var asked time.Time
	await(s.tb, "a new master on request", func() (err error) {
		if to, err = s.successor(from); err != nil && time.Since(asked) > attempt {
			asked = time.Now()
			if _, refused := s.watchers[0].try("sentinel", "failover", sentinelMaster); refused != nil {
				return errors.Join(err, refused)
			}
		}
		return err
	})
	return from, to
}

// AwaitHealthy waits until every sentinel knows the others and all servers, none is
// believed dead that is running, and all running servers but the master replicate it.
func (s *Sentinel) AwaitHealthy() {
	s.tb.Helper()
	await(s.tb, "healthy servers and sentinels", func() error {
		master, err := s.master()
		if err != nil {
			return err
		}
		if err := hasRole(master, "master"); err != nil {
			return err
		}
		for _, n := range s.nodes {
			if n != master && n.running() {
				if err := hasRole(n, "slave"); err != nil {
					return err
				}
			}
		}
		if err := s.inSync(); err != nil {
			return err
		}
		for _, w := range s.watchers {
			if w.running() {
				if err := s.content(w); err != nil {
					return fmt.Errorf("%s: %w", w.addr, err)
				}
			}
		}
		return nil
	})
}

// content fails while a sentinel misses a server.
func (s *Sentinel) content(w *Server) error {
	reply, err := w.try("sentinel", "master", sentinelMaster)
	if err != nil {
		return err
	}
	info := fields(reply)
	want := map[string]string{
		"flags":               "master",
		"num-slaves":          strconv.Itoa(len(s.nodes) - 1),
		"num-other-sentinels": strconv.Itoa(len(s.watchers) - 1),
	}
	for field, value := range want {
		if info[field] != value {
			return fmt.Errorf("%s is %q", field, info[field])
		}
	}
	reply, err = w.try("sentinel", "replicas", sentinelMaster)
	if err != nil {
		return err
	}
	for _, r := range reply.([]any) {
		replica := fields(r)
		for _, n := range s.nodes {
			if n.addr == net.JoinHostPort(replica["ip"], replica["port"]) && n.running() && replica["flags"] != "slave" {
				return fmt.Errorf("replica %s is %q", n.addr, replica["flags"])
			}
		}
	}
	return nil
}

// fields reads a reply that is a map, or a list of names and values in turn.
func fields(reply any) map[string]string {
	all := make(map[string]string)
	switch r := reply.(type) {
	case map[any]any:
		for k, v := range r {
			all[fmt.Sprint(k)] = fmt.Sprint(v)
		}
	case []any:
		for i := 0; i+1 < len(r); i += 2 {
			all[fmt.Sprint(r[i])] = fmt.Sprint(r[i+1])
		}
	}
	return all
}

func (s *Sentinel) inSync() error {
	for _, n := range s.nodes {
		if n.running() {
			if err := inSync(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func hasRole(n *Server, role string) error {
	info, err := n.try("info", "replication")
	if err != nil {
		return err
	}
	if got := infoField(info.(string), "role"); got != role {
		return fmt.Errorf("%s is a %s", n.addr, got)
	}
	return nil
}
