//go:build unix

package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestOpenClient_NamesNoPassword(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"redis://:hush/hush@h", "redis+cluster://:hu%zzsh@h,h2", "redis+sentinel://:hu sh@h:x/m", "hush", "redis://:hush@h/db", "x://:hush@h"} {
		if _, err := openClient(u, time.Second); err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "sh@") {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, u := range []string{"redis://u:p%40@h:1/2", "rediss://h", "unix:///tmp/s", "redis+cluster://u:p@a:1,b:2,c", "rediss+cluster://a,b", "redis+sentinel://u:p@a,b/main/3?sentinel_password=s"} {
		client, err := openClient(u, time.Second)
		if err != nil {
			t.Errorf("%s: %v", u, err)
			continue
		}
		_ = client.Close()
	}
}

// --timeout bounds each wait for Redis; what a URL says counts for more.
func TestOpenClient_HasTheTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	const timeout = 100 * time.Millisecond
	for url, read := range map[string]time.Duration{
		"redis://" + silent.Addr().String():                         timeout,
		"redis://" + silent.Addr().String() + "?read_timeout=200ms": 200 * time.Millisecond,
		"redis+cluster://" + silent.Addr().String():                 timeout,
		"redis+sentinel://" + silent.Addr().String() + "/main":      timeout,
	} {
		client, err := openClient(url, timeout)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		switch client := client.(type) {
		case *redis.Client:
			if o := client.Options(); o.ReadTimeout != read || o.DialTimeout != timeout || o.WriteTimeout != timeout || o.PoolTimeout != timeout || !o.ContextTimeoutEnabled {
				t.Errorf("%s: %+v", url, o)
			}
		case *redis.ClusterClient:
			if o := client.Options(); o.ReadTimeout != read || o.DialTimeout != timeout || !o.ContextTimeoutEnabled {
				t.Errorf("%s: %+v", url, o)
			}
		}
		begun := time.Now()
		conn := &connection{clients: []redis.UniversalClient{client}}
		if err := conn.ping(t.Context(), timeout); err == nil || time.Since(begun) > 4*time.Second { // go-redis has 5 s
			t.Errorf("%s: %v after %v", url, err, time.Since(begun))
		}
	}
}
