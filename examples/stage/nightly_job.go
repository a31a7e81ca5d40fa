package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	steps   = 6
	lease   = time.Second
	maxHold = 3 * time.Second
	enough  = 3 * (lease + maxHold) // for the other two to finish the job
)

// nightlyJob plays the nightly job with 3 replicas, each a process. One is killed in step 3. The next one calls a service in step 5
// that does not answer.
var nightlyJob = scenario{
	usage: "a job on every replica: one runs it, the next takes over if it dies or gets stuck",
	modes: map[string]string{
		"recipe": "guard the job with SET NX PX, a goroutine that renews it, and compare-and-delete",
	},
	direct: directNightlyJob,
}

func directNightlyJob(ctx context.Context, d *Director) {
	service, err := newService()
	d.Must(err)
	defer service.close()
	d.Say("%d steps, lease %v, at most %v for one replica", steps, lease, maxHold)
	dying := d.Start("replica-1", "-service", service.url("replica-1"))
	select {
	case <-service.third:
	case <-ctx.Done():
		d.giveUp("%s does not come to step 3", dying.name)
	}
	others := []*Process{d.Start("replica-2", "-service", service.url("replica-2")), d.Start("replica-3", "-service", service.url("replica-3"))}
	for _, p := range others {
		p.Await("is up")
	}
	dying.Kill("in step 3") // after a lease another replica takes over, at step 3

	d.Say("the others have %v to finish the job", enough)
	if _, finished := others[0].AwaitFor("sees that the job is done", enough); finished {
		for _, p := range others {
			p.Wait()
		}
	}
	done, err := d.Redis.Get(ctx, d.Key("done")).Int()
	d.Must(err)
	d.Check(done == steps, "%v later the job is still at step %d: %s is stuck and keeps the lock", enough, done+1, service.stuck())
}

const working = 100 * time.Millisecond // for each step

// service is what the steps of the job call.
type service struct {
	listener net.Listener
	server   http.Server
	third    chan struct{} // closed when the first replica is in its third step

	mu   sync.Mutex // guards the following
	hung string     // the replica whose call was not answered
}

func newService() (*service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{listener: listener, third: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{replica}/step/{step}", s.answer)
	s.server.Handler = mux
	go s.server.Serve(listener) // until close
	return s, nil
}

func (s *service) close() { s.server.Close() }

func (s *service) url(replica string) string {
	return "http://" + s.listener.Addr().String() + "/" + replica
}

func (s *service) stuck() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hung
}

// answer takes some time. It keeps the third step of the first replica, and the first call of the fifth step, waiting.
func (s *service) answer(_ http.ResponseWriter, r *http.Request) {
	replica := r.PathValue("replica")
	switch r.PathValue("step") {
	case "3":
		if replica == "replica-1" {
			close(s.third)
			<-r.Context().Done() // it is killed
		}
	case "5":
		s.mu.Lock()
		first := s.hung == ""
		if first {
			s.hung = replica
		}
		s.mu.Unlock()
		if first {
			<-r.Context().Done()
		}
	}
	time.Sleep(working)
}
