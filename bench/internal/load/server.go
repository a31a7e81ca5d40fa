package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a private redis-server that keeps nothing on disk.
type Server struct {
	address string
	version string
	admin   *redis.Client // for INFO and FLUSHALL; no contender uses it
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has ended
	log     *strings.Builder
	javas   []*worker // without a job
}

// Address is where it listens.
func (s *Server) Address() string { return s.address }

// Version is that of Redis.
func (s *Server) Version() string { return s.version }

// StartServer starts a redis-server where p says, on a loopback port that the kernel
// chooses, and waits until it answers.
func StartServer(p Pinning) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server is needed to run the benchmarks and is not in PATH; install the package redis-server")
	}
	// The port is free between the kernel's choice and the server's bind, so another
	// process can take it: then the server exits and the next port is tried.
	for range 5 {
		s, err := start(path, p)
		if err == nil {
			return s, nil
		}
		if s == nil {
			return nil, err
		}
		s.Stop()
	}
	return nil, fmt.Errorf("%s does not start on a free port", path)
}

// start returns an error alone if trying again is useless, with the server if not.
func start(path string, p Pinning) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		exited:  make(chan struct{}),
		log:     new(strings.Builder),
	}
	args := []string{path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning"}
	if p.server >= 0 {
		args = append([]string{"taskset", "-c", strconv.Itoa(p.server)}, args...) // it becomes the server
	}
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	dieWithParent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	go func() {
		_ = s.cmd.Wait() // how it ended does not matter; s.log says why
		close(s.exited)
	}()
	s.admin = redis.NewClient(&redis.Options{Addr: s.address, PoolSize: 1, MaxRetries: -1})
	return s, s.ready()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		info, err := s.admin.Info(ctx, "server").Result()
		if err == nil {
			s.version = field(info, "redis_version")
			if pid := field(info, "process_id"); pid != strconv.Itoa(s.cmd.Process.Pid) {
				return fmt.Errorf("port %s belongs to process %s", s.address, pid)
			}
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("redis-server ended at once: %s", s.log)
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// field returns the value of a line "name:value" of an INFO reply.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k == name {
			return v
		}
	}
	return ""
}

// Reset empties the server, so that no scenario finds what another left: once the clients
// of the last one have gone, since a virtual machine answers before its own has. What
// it had sent by then could take the lock, or stand in its queue, for no caller.
func (s *Server) Reset(ctx context.Context) error {
	left := int64(0)
	err := error(nil)
	gone := within(clientsGone, func() bool {
		left, err = s.clients(ctx)
		return left == 0 || err != nil
	})
	switch {
	case err != nil:
		return err
	case !gone:
		return fmt.Errorf("%d connections of the last measurement are still open after %s", left, clientsGone)
	}
	if err := s.awaitRest(); err != nil {
		return err
	}
	return s.admin.FlushAll(ctx).Err()
}

const clientsGone = 20 * time.Second

// awaitRest waits until the virtual machines leave the cores alone: one that has answered
// goes on ending threads and compiling, which cost the library that was measured next up to 99 % of its
// rate.
func (s *Server) awaitRest() error {
	if len(s.javas) == 0 {
		return nil
	}
	const sample, tick = 100 * time.Millisecond, 10 * time.Millisecond
	var used time.Duration
	var err error
	rested := within(clientsGone, func() bool {
		var before, after time.Duration
		if before, err = s.usedByIdle(); err != nil {
			return true
		}
		time.Sleep(sample)
		after, err = s.usedByIdle()
		used = after - before
		return used <= tick || err != nil
	})
	if !rested {
		return fmt.Errorf("virtual machines without a job use %v of CPU time in %v, %v after it", used, sample, clientsGone)
	}
	return err
}

// clients returns how many connections there are, but for the one that asks.
func (s *Server) clients(ctx context.Context) (int64, error) {
	info, err := s.admin.Info(ctx, "clients").Result()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(field(info, "connected_clients"), 10, 64)
	return n - 1, err
}

// Stop ends the server, and workers that wait for a job. It may be called more than once.
func (s *Server) Stop() {
	for _, w := range s.javas {
		_ = w.stop() // there is nothing left that it could spoil
	}
	s.javas = nil
	s.admin.Close()
	_ = s.cmd.Process.Kill() // it has nothing to save, and may have ended
	<-s.exited
}
