package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// payments answers 423 while another request pays the same order, and 503 while Redis is away.
func payments(locks *holdfast.Manager, pay func(ctx context.Context, order string) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/payment", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		lease, err := locks.Mutex("order:" + id).TryLock(r.Context())
		if errors.Is(err, holdfast.ErrNotAcquired) {
			http.Error(w, "this order is being paid", http.StatusLocked)
			return
		}
		if err != nil {
			http.Error(w, "try again later", http.StatusServiceUnavailable)
			return
		}
		defer lease.Unlock(r.Context())
		if err := pay(lease.Context(r.Context()), id); err != nil {
			http.Error(w, "not paid", http.StatusInternalServerError)
		}
	})
	return mux
}

// post sends a request to a handler and returns the status.
func post(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
	return w.Code
}

// An HTTP handler that refuses an order that another request is working on. A test calls NewServer(t) instead of Start.
func Example_handler() {
	server := holdfasttest.Start()
	defer server.Close()
	handler := payments(server.NewManager(), func(context.Context, string) error { return nil })

	other := server.NewManager() // as in another process
	lease := server.Hold(other.Mutex("order:7"))
	fmt.Println(post(handler, "/orders/7/payment"), post(handler, "/orders/8/payment"))

	lease.Unlock(context.Background())
	fmt.Println(post(handler, "/orders/7/payment"))

	server.Down()
	fmt.Println(post(handler, "/orders/7/payment"))
	// Output:
	// 423 200
	// 200
	// 503
}
