//go:build unix

package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// saysOf is all that can be printed of a URL: the error, or the addresses of the client and of what is probed.
func saysOf(given string) string {
	client, err := openClient(given, time.Second, encryption{})
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	_, said := firstAddr(given)
	switch c := client.(type) {
	case *redis.Client:
		said += " " + c.Options().Addr
	case *redis.ClusterClient:
		said += fmt.Sprint(" ", c.Options().Addrs)
	}
	return said
}

// shapes are URLs with a place for the password.
var shapes = []string{
	"redis://:%s@h", "redis://u:%s@h:1/2", "rediss://:%s@h/1?db=2", "unix://:%s@/run/s", "redis+cluster://:%s@h:1,h2", "rediss+cluster://u:%s@h",
	"redis+sentinel://:%s@h,h2/m", "redis+sentinel://h/m?sentinel_password=%s", "%s@h://h", "rediss+%s@h://h",
}

func TestOpenClient_Reads(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"", "hush", "redis://:hush@h/db", "redis://h?pool_size=many", "redis://h?hush=1", "unix://", "redis+sentinel://h", "redis+other://h", "x://:hush@h"} {
		if client, err := openClient(u, time.Second, encryption{}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, %v", u, client, err)
		}
	}
	for _, u := range []string{"redis://u:p%40@h:1/2", "redis://:a@b@h", "rediss://h", "unix:///run/a@b", "redis+cluster://u:p@a:1,b:2,c", "rediss+cluster://a,b", "redis+sentinel://u:p@a,b/main/3?sentinel_password=s"} {
		client, err := openClient(u, time.Second, encryption{})
		if err != nil {
			t.Errorf("%s: %v", u, err)
			continue
		}
		_ = client.Close()
	}
}

// FuzzOpenClient: whatever is in a password, neither its beginning nor its end is printed.
func FuzzOpenClient(f *testing.F) {
	for _, middle := range []string{"", "/", "?", "#", "@", "@1/", ":1/", "://", "%", "&a=", ",", ";", "/0?", "]", "\n", "/3?db=", "?pool_size=", "%zz", " ", "[", ",b/", "@12/"} {
		f.Add(middle)
	}
	f.Fuzz(func(t *testing.T, middle string) {
		for _, shape := range shapes {
			for _, begin := range []string{"k3yx", "12"} { // a number passes for a port, or for a database
				said := strings.ToLower(saysOf(fmt.Sprintf(shape, begin+middle+"s3cret")))
				if strings.Contains(said, begin) || strings.Contains(said, "s3cret") {
					t.Errorf(shape+" says %q", begin+middle+"s3cret", said)
				}
			}
		}
	})
}

// --timeout bounds each wait for Redis; what a URL says counts for more.
func TestOpenClient_HasTheTimeout(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and never answers
	must(t, err)
	defer silent.Close()
	const timeout = 100 * time.Millisecond
	for url, read := range map[string]time.Duration{
		"redis://" + silent.Addr().String():                         timeout,
		"redis://" + silent.Addr().String() + "?read_timeout=200ms": 200 * time.Millisecond,
		"redis+cluster://" + silent.Addr().String():                 timeout,
		"redis+sentinel://" + silent.Addr().String() + "/main":      timeout,
	} {
		client, err := openClient(url, timeout, encryption{})
		must(t, err)
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
		if err := conn.ping(t.Context(), []string{url}, timeout); err == nil || time.Since(begun) > 4*time.Second { // go-redis has 5 s
			t.Errorf("%s: %v after %v", url, err, time.Since(begun))
		}
	}
}
