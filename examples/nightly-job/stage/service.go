package main

import (
	"net"
	"net/http"
	"sync"
	"time"
)

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
