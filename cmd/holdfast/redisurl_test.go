//go:build unix

package main

import (
	"strings"
	"testing"
)

func TestOpenClient_NamesNoPassword(t *testing.T) {
	t.Parallel()
	for _, u := range []string{"redis://:hush/hush@h", "redis+cluster://:hu%zzsh@h,h2", "redis+sentinel://:hu sh@h:x/m", "hush", "redis://:hush@h/db", "x://:hush@h"} {
		if _, err := openClient(u); err == nil || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "sh@") {
			t.Errorf("%s: %v", u, err)
		}
	}
	for _, u := range []string{"redis://u:p%40@h:1/2", "rediss://h", "unix:///tmp/s", "redis+cluster://u:p@a:1,b:2,c", "rediss+cluster://a,b", "redis+sentinel://u:p@a,b/main/3?sentinel_password=s"} {
		client, err := openClient(u)
		if err != nil {
			t.Errorf("%s: %v", u, err)
			continue
		}
		_ = client.Close()
	}
}
