package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// replica returns a shop with a Manager of its own, over the server and the database that all replicas share.
func replica(t *testing.T, server *holdfasttest.Server, db *sql.DB) *shop {
	return &shop{locks: server.NewManager(), db: db, log: slog.New(slog.DiscardHandler), tracer: trace.NewTracerProvider().Tracer("")}
}

func database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := open(t.Context(), filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func post(s *shop) int {
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, httptest.NewRequest("POST", "/stock/phone/sell", nil))
	return w.Code
}

func TestSell_NeverOversells(t *testing.T) {
	server, db := holdfasttest.NewServer(t), database(t)
	var mu sync.Mutex
	codes := make(map[int]int)
	var all sync.WaitGroup
	for range 3 {
		s := replica(t, server, db)
		for range 8 {
			all.Go(func() {
				code := post(s)
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
			})
		}
	}
	all.Wait()
	if codes[http.StatusOK] != 10 || codes[http.StatusGone] != 14 {
		t.Errorf("10 phones, 24 customers: %v", codes)
	}
	if n, err := stock(t.Context(), db, "phone"); n != 0 || err != nil {
		t.Errorf("left: %d, %v", n, err)
	}
	if held := server.Held(); len(held) > 0 {
		t.Errorf("not released: %q", held)
	}
}

func TestSell_BusyAndUnavailable(t *testing.T) {
	server := holdfasttest.NewServer(t)
	s := replica(t, server, database(t))
	lease := server.Hold(server.NewManager().Mutex("shop:stock:phone")) // another replica
	if code := post(s); code != http.StatusTooManyRequests {
		t.Errorf("busy: %d", code)
	}
	lease.Unlock(t.Context())
	server.Down()
	if code := post(s); code != http.StatusServiceUnavailable {
		t.Errorf("without Redis: %d", code)
	}
	server.Up()
	if code := post(s); code != http.StatusOK {
		t.Errorf("with Redis again: %d", code)
	}
}

// A replica that was paused beyond its lease writes nothing, even if it does not look at its context.
func TestSell_LateHolderIsRejected(t *testing.T) {
	server, db := holdfasttest.NewServer(t), database(t)
	ctx := t.Context()
	paused := server.Hold(replica(t, server, db).lock("phone"))
	server.Lose("shop:stock:phone")
	if left, err := replica(t, server, db).sell(ctx, "phone"); left != 9 || err != nil {
		t.Fatalf("the next holder: %d, %v", left, err)
	}
	if _, err := decrement(ctx, db, "phone", paused.Token()); !errors.Is(err, errStale) {
		t.Errorf("the late write: %v", err)
	}
	if n, _ := stock(ctx, db, "phone"); n != 9 {
		t.Errorf("left: %d", n)
	}
}

func TestReport_RunsOncePerDay(t *testing.T) {
	server, db := holdfasttest.NewServer(t), database(t)
	monday := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	var all sync.WaitGroup
	for range 5 {
		s := replica(t, server, db)
		all.Go(func() {
			if err := s.report(t.Context(), monday); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, day := range []time.Time{monday, monday.AddDate(0, 0, 1)} { // a replica that starts later
		if err := replica(t, server, db).report(t.Context(), day); err != nil {
			t.Error(err)
		}
	}
	var n int
	if err := db.QueryRow(`SELECT count(*) FROM report`).Scan(&n); n != 2 || err != nil {
		t.Errorf("%d reports of 2 days, %v", n, err)
	}
}

// A replica that loses its lock before it has written leaves the report to the next.
func TestReport_IsRolledBackAfterALoss(t *testing.T) {
	server, db := holdfasttest.NewServer(t), database(t)
	lease := server.Hold(replica(t, server, db).locks.Mutex("shop:report"))
	server.Lose("shop:report")
	<-lease.Done()
	if ran, err := writeReport(lease.Context(t.Context()), db, "2026-11-23", 1); ran || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", ran, err)
	}
}

func TestSell_LockIsPartOfTheTrace(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	traces := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	server := holdfasttest.NewServer(t)
	s := replica(t, server, database(t))
	s.locks, s.tracer = server.NewManager(holdfast.WithTracerProvider(traces)), traces.Tracer("shop")
	if code := post(s); code != http.StatusOK {
		t.Fatal(code)
	}
	names := make(map[string]bool)
	for _, span := range spans.Ended() {
		names[span.Name()] = true
		if span.SpanContext().TraceID() != spans.Ended()[0].SpanContext().TraceID() {
			t.Errorf("%s is in a trace of its own", span.Name())
		}
	}
	if !names["sell"] || !names["lock.acquire"] || !names["lock.release"] {
		t.Errorf("spans: %v", names)
	}
}

// The whole service serves, and stops when its context ends: it finishes the request under way and releases its locks.
func TestServe_StopsGracefully(t *testing.T) {
	server := holdfasttest.NewServer(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	file := filepath.Join(t.TempDir(), "shop.db")
	go func() {
		served <- serve(ctx, slog.New(slog.DiscardHandler), server.Client(), listener, file)
	}()
	other := server.Hold(server.NewManager().Mutex("shop:stock:phone"))
	answered := make(chan string, 1)
	go func() {
		r, err := http.Post(fmt.Sprintf("http://%s/stock/phone/sell", listener.Addr()), "", nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		answered <- r.Status + " " + string(body)
	}()
	server.AwaitWaiters("shop:stock:phone", 1)
	stop()
	other.Unlock(t.Context())
	if answer := <-answered; answer != "200 OK {\"left\":9}\n" {
		t.Errorf("the request under way: %q", answer)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if held := server.Held(); len(held) > 0 {
		t.Errorf("not released: %q", held)
	}
}
