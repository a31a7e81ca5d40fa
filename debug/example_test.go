package debug_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-go/holdfast/debug"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func ExampleHandler() {
	server := holdfasttest.Start() // your program uses its Redis
	defer server.Close()
	locks := server.NewManager()

	mux := http.NewServeMux() // of the operators' port
	mux.Handle("/debug/holdfast/", debug.Handler(locks))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/debug/holdfast/", nil))
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "Nothing goes wrong"))
	// Output: 200 true
}

func ExampleWithUnlock() {
	server := holdfasttest.Start()
	defer server.Close()
	locks := server.NewManager()

	isAdmin := func(r *http.Request) bool { return r.Header.Get("X-Role") == "admin" } // as your proxy sets it
	page := debug.WithUnlock(isAdmin).Handler(locks)

	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("POST", "/unlock", nil))
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	// Output: 403 not allowed to free a lock
}
