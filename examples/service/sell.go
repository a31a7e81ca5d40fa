package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
	"go.opentelemetry.io/otel/trace"
)

// shop is what the handlers and the nightly job share.
type shop struct {
	locks  *holdfast.Manager
	db     *sql.DB
	log    *slog.Logger
	tracer trace.Tracer
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /stock/{item}/sell", s.handleSell)
	mux.HandleFunc("GET /stock/{item}", s.handleStock)
	return mux
}

// maxWait is how long a customer waits for other customers of the same item.
const maxWait = 2 * time.Second

func (s *shop) handleSell(w http.ResponseWriter, r *http.Request) {
	ctx, span := s.tracer.Start(r.Context(), "sell") // the spans of the lock are its children
	defer span.End()
	left, err := s.sell(ctx, r.PathValue("item"))
	switch {
	case err == nil:
		json.NewEncoder(w).Encode(map[string]int{"left": left})
	case errors.Is(err, errSoldOut):
		http.Error(w, "sold out", http.StatusGone)
	case errors.Is(err, holdfast.ErrNotAcquired):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "busy", http.StatusTooManyRequests)
	default: // Redis or the database cannot be reached, or the lease was lost and nothing was written
		span.RecordError(err)
		s.log.ErrorContext(ctx, "sale failed", "item", r.PathValue("item"), "error", err)
		http.Error(w, "try again", http.StatusServiceUnavailable)
	}
}

// lock is the lock of an item. Items do not wait for each other.
func (s *shop) lock(item string) *holdfast.Mutex {
	return s.locks.Mutex("shop:stock:"+item, holdfast.WithFencing(), holdfast.WithWait(maxWait))
}

// sell sells one item under its lock.
func (s *shop) sell(ctx context.Context, item string) (left int, err error) {
	lease, err := s.lock(item).Lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() {
		// The sale is in the database, or it is not: that Unlock failed changes nothing for the customer.
		if err := lease.Unlock(ctx); err != nil {
			s.log.WarnContext(ctx, "unlock", "item", item, "error", err)
		}
	}()
	token, err := lease.FencingToken()
	if err != nil {
		return 0, err
	}
	return decrement(lease.Context(ctx), s.db, item, token)
}

func (s *shop) handleStock(w http.ResponseWriter, r *http.Request) {
	left, err := stock(r.Context(), s.db, r.PathValue("item"))
	if err != nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	json.NewEncoder(w).Encode(map[string]int{"left": left})
}
