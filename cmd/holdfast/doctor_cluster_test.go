//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func clusterURL(cluster *redistest.Cluster, user string) string {
	var hosts []string
	for _, node := range cluster.Nodes() {
		hosts = append(hosts, node.Addr())
	}
	return fmt.Sprintf("redis+cluster://%s@%s", user, strings.Join(hosts, ","))
}

func TestDoctor_Cluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	url := clusterURL(cluster, ":"+cluster.Nodes()[0].Password())
	status, found := diagnose(t, url)
	if f := found["HF103"]; status != 0 || f.Verdict != good || f.Node == "" {
		t.Errorf("exit status %d: %+v", status, f)
	}
	first := cluster.Nodes()[0]
	status, found = diagnose(t, "redis://:"+first.Password()+"@"+first.Addr())
	if f := found["HF103"]; status != exitNo || f.Verdict != failed || f.Do != "holdfast doctor --redis redis+cluster://"+first.Addr() {
		t.Errorf("of one server: exit status %d: %+v", status, f)
	}
	for _, args := range [][]string{{"ls"}, {"inspect", "a"}, {"unlock", "--force", "a"}, {"wait", "a"}, {"top", "--once"}} {
		i := start(t, "redis://:"+first.Password()+"@"+first.Addr(), args...)
		status, said := i.wait(t), i.stderr.String()
		if status != exitUsage && status != 125 || !strings.Contains(said, "use redis+cluster://"+first.Addr()) {
			t.Errorf("%v: exit status %d: %s", args, status, said)
		}
	}
	for try := 1; ; try++ {
		for _, node := range cluster.Nodes() { // each has its own view
			_ = node.Admin().ClusterDelSlots(t.Context(), int(wire.Slot("lock"))).Err() // it fails where the slot is gone
		}
		status, found = diagnose(t, url)
		f := found["HF103"]
		if status == exitNo && f.Verdict == failed && strings.Contains(f.Means, "1 of 16384 slots have no server") {
			break
		}
		if try == 10 { // a heartbeat that was on its way gives the slot back
			t.Fatalf("exit status %d: %+v", status, f)
		}
	}
}

// In a cluster of Redis 7 the lock's channels are sharded and the inbox is not, so a user needs rights to both kinds.
func TestDoctor_ClusterRights(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	if cluster.Nodes()[0].Major() < 7 {
		t.Skip("the servers have no sharded channels")
	}
	const inbox, lock = "holdfast_inbox", "redisson_lock__channel"
	for _, tt := range []struct {
		change  []any
		denied  []string // families
		command string   // that is granted by what the doctor says to type
	}{
		{nil, nil, ""},
		{[]any{"-subscribe"}, []string{inbox}, "+subscribe"},
		{[]any{"-ssubscribe"}, []string{lock}, "+ssubscribe"},
		{[]any{"-spublish"}, []string{lock}, "+spublish"},
	} {
		for _, node := range cluster.Nodes() {
			do(t, node, "acl", "deluser", "locks")
			do(t, node, append(append(accessRights(t), "+spublish", "+ssubscribe", "+sunsubscribe", "+cluster|slots", "+asking"), tt.change...)...)
		}
		for _, as := range [][]string{nil, {"--as=locks"}} {
			user := "locks:secret"
			if as != nil {
				user = ":" + cluster.Nodes()[0].Password()
			}
			var denied []string
			_, all := findings(t, clusterURL(cluster, user), append(as, "--prefix=app:")...)
			for _, f := range all {
				if f.Code != checkMessages.code || f.Verdict == good {
					continue
				}
				for _, family := range []string{inbox, lock} {
					if strings.Contains(f.Means, "may not use channels "+family+":*") {
						denied = append(denied, family)
					}
				}
				if !strings.Contains(f.Do, tt.command) {
					t.Errorf("%v, %v: %q does not grant %s", tt.change, as, f.Do, tt.command)
				}
			}
			if denied = slices.Compact(denied); fmt.Sprint(denied) != fmt.Sprint(tt.denied) {
				t.Errorf("%v, %v: denied are %q, want %q", tt.change, as, denied, tt.denied)
			}
		}
	}
}
