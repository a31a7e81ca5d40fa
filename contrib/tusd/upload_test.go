package holdfasttusd_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/holdfast-go/holdfast"
	holdfasttusd "github.com/holdfast-go/holdfast/contrib/tusd"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // tusd writes a line for each request
	os.Exit(redistest.Main(m, map[string]func([]string){"server": func(args []string) {
		srv, err := serve(locktest.ManagerOfRole(args[0]), args[1])
		if err != nil {
			panic(err)
		}
		fmt.Println("serves", srv.URL)
		bufio.NewScanner(os.Stdin).Scan()
	}}))
}

// serve starts a server whose uploads are in the directory files.
func serve(locks *holdfast.Manager, files string) (*httptest.Server, error) {
	composer := handler.NewStoreComposer()
	filestore.New(files).UseIn(composer)
	composer.UseLocker(holdfasttusd.New(locks))
	tus, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(http.StripPrefix("/files/", tus)), nil
}

// world has servers that share a directory and a Redis.
type world struct {
	t     *testing.T
	srv   *redistest.Server
	files string
}

func newWorld(t *testing.T) *world {
	return &world{t, redistest.Start(t, redistest.WithoutPassword()), t.TempDir()}
}

// process returns the manager of another process.
func (w *world) process() *holdfast.Manager {
	w.t.Helper()
	return locktest.ManagerAsIs(w.t, w.srv.Client(w.t), holdfast.WithLease(time.Second))
}

// server starts one, and returns its address.
func (w *world) server() string {
	w.t.Helper()
	srv, err := serve(w.process(), w.files)
	redistest.Must(w.t, err)
	w.t.Cleanup(srv.Close)
	return srv.URL
}

// send sends a request to a server, and returns the answer, which has the status want.
func (w *world) send(want int, method, url string, body io.Reader, header ...string) http.Header {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, url, body)
	redistest.Must(w.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Header.Set("Tus-Resumable", "1.0.0")
	resp, err := http.DefaultClient.Do(req)
	redistest.Must(w.t, err)
	defer resp.Body.Close()
	said, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != want {
		w.t.Fatalf("%s %s: %d %s, want %d", method, url, resp.StatusCode, said, want)
	}
	return resp.Header
}

// create makes an upload of so many bytes, and returns its path.
func (w *world) create(server string, length int) (path string) {
	w.t.Helper()
	h := w.send(http.StatusCreated, http.MethodPost, server+"/files/", nil, "Upload-Length", strconv.Itoa(length))
	return strings.TrimPrefix(h.Get("Location"), server)
}

// stored is what the upload has.
func (w *world) stored(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.files, filepath.Base(path)))
	redistest.Must(w.t, err)
	return string(b)
}

// stuck begins to upload text, and returns when it is stored. The request does not end by itself. ended gets its status, unless
// the server dies.
func (w *world) stuck(server, path, text string) (ended <-chan int) {
	w.t.Helper()
	body, client := io.Pipe()
	w.t.Cleanup(func() { client.Close() })
	status := make(chan int, 1)
	go func() {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodPatch, server+path, body)
		req.Header = http.Header{"Tus-Resumable": {"1.0.0"}, "Upload-Offset": {"0"}, "Content-Type": {"application/offset+octet-stream"}}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			status <- resp.StatusCode
		}
	}()
	_, err := client.Write([]byte(text))
	redistest.Must(w.t, err)
	redistest.Eventually(w.t, redistest.Patience, "the first part is stored", func() bool { return w.stored(path) == text })
	return status
}

// goOn has the client ask a server for the offset, which must be after first, and upload the rest there.
func (w *world) goOn(server, path, first, rest string) {
	w.t.Helper()
	offset := w.send(http.StatusOK, http.MethodHead, server+path, nil).Get("Upload-Offset")
	redistest.Want(w.t, offset, strconv.Itoa(len(first)), "the offset is %s, want %s")
	w.send(http.StatusNoContent, http.MethodPatch, server+path, strings.NewReader(rest), "Upload-Offset", offset, "Content-Type", "application/offset+octet-stream")
	redistest.Want(w.t, w.stored(path), first+rest, "stored %q, want %q")
}

// The client of a connection that is dead, which the first server does not know, goes on at another server.
func TestUpload_MovesToAnotherServer(t *testing.T) {
	w := newWorld(t)
	a, b := w.server(), w.server()
	path := w.create(a, 11)
	ended := w.stuck(a, path, "hello ")
	w.goOn(b, path, "hello ", "world")
	redistest.Want(t, redistest.Next(t, ended, "the first server does not release the upload"), http.StatusBadRequest, "the first request ends with %d, want %d")
	w.srv.AwaitNone(t, "tusd:"+filepath.Base(path))
}

func TestUpload_RedisAway(t *testing.T) {
	w := newWorld(t)
	a, b := w.server(), w.server()
	path := w.create(a, 11)
	ended := w.stuck(a, path, "hello ")
	w.srv.Kill()
	redistest.Want(t, redistest.Next(t, ended, "the upload goes on without a lock"), http.StatusBadRequest, "the request ends with %d, want %d")
	w.srv.Restart()
	w.goOn(b, path, "hello ", "world")
}

func TestUpload_KilledServer(t *testing.T) {
	w := newWorld(t)
	killed := redistest.StartProcess(t, "server", w.srv.Addr(), w.files)
	a, b := killed.Expect(t, "serves "), w.server()
	path := w.create(a, 11)
	w.stuck(a, path, "hello ")
	killed.Kill()
	w.goOn(b, path, "hello ", "world")
}

// A server that was paused past its lease stops its request when it resumes.
func TestUpload_PausedServer(t *testing.T) {
	w := newWorld(t)
	paused := redistest.StartProcess(t, "server", w.srv.Addr(), w.files)
	a, b := paused.Expect(t, "serves "), w.server()
	path := w.create(a, 11)
	ended := w.stuck(a, path, "hello ")
	paused.Pause()
	w.goOn(b, path, "hello ", "world")
	paused.Resume()
	redistest.Want(t, redistest.Next(t, ended, "the upload goes on without a lock"), http.StatusBadRequest, "the request ends with %d, want %d")
	redistest.Want(t, w.stored(path), "hello world", "stored %q, want %q")
}
