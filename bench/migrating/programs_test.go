// Package migrating has the programs of docs/MIGRATING.md: a payment under a lock of each library, and under one of Holdfast.
package migrating

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Each program that needs only Redis runs as a reader would copy it, but for the address.
func TestPrograms_Run(t *testing.T) {
	srv := redistest.Start(t, redistest.WithoutPassword())
	for _, library := range []string{"redsync", "redislock", "rueidislock", "both", "holdfast", "own"} {
		run(t, library, "localhost:6379", srv.Addr())
	}
	if keys := srv.Admin().Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// The program for etcd runs on an etcd in this process. A server of Consul cannot be had as a Go module: go vet compiles that program.
func TestPrograms_RunOnEtcd(t *testing.T) {
	server := startEtcd(t)
	run(t, "etcd", "localhost:2379", server.Clients[0].Addr().String())
	left, err := server.Server.Range(t.Context(), &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
	if err != nil || len(left.Kvs) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// startEtcd starts an etcd of one server in this process.
func startEtcd(tb testing.TB) *embed.Etcd {
	config := embed.NewConfig()
	config.Dir, config.LogLevel = tb.TempDir(), "error"
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	redistest.Must(tb, err)
	tb.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		tb.Fatal(err)
	}
	return server
}

// run runs the program of a library with another address.
func run(t *testing.T, library, from, to string) {
	t.Helper()
	dir, err := os.Getwd()
	redistest.Must(t, err)
	program, err := os.ReadFile(library + "/main.go")
	redistest.Must(t, err)
	if !strings.Contains(string(program), from) {
		t.Fatalf("%s does not connect to %s", library, from)
	}
	here := filepath.Join(t.TempDir(), "main.go")
	redistest.Must(t, os.WriteFile(here, []byte(strings.ReplaceAll(string(program), from, to)), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, library, "main.go"): here}})
	redistest.Must(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	redistest.Must(t, os.WriteFile(file, overlay, 0o600))
	if said, err := exec.Command("go", "run", "-overlay", file, "./"+library).CombinedOutput(); err != nil || string(said) != "charged account 7\n" {
		t.Errorf("%s: %v\n%s", library, err, said)
	}
}
