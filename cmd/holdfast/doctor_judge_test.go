//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What no server can be made to do in a test is judged without one.
func TestDoctor_Judges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		judge func(*doctor)
		want  verdict
	}{
		{"6.2.5", func(d *doctor) { d.judgeServer(facts{"redis_version": "6.2.5"}) }, failed},
		{"6.2.14", func(d *doctor) { d.judgeServer(facts{"redis_version": "6.2.14"}) }, good},
		{"8.2.3", func(d *doctor) { d.judgeServer(facts{"redis_version": "8.2.3"}) }, good},
		{"valkey", func(d *doctor) { d.judgeServer(facts{"redis_version": "7.2.4", "valkey_version": "9.1.2"}) }, good},
		{"no version", func(d *doctor) { d.judgeServer(facts{}) }, warned},
		{"slow", func(d *doctor) { d.judgeRoundTrip([]time.Duration{1, 11 * time.Second}) }, failed},
		{"slower than is good", func(d *doctor) { d.judgeRoundTrip([]time.Duration{1, 4 * time.Second}) }, warned},
		{"forks for long", func(d *doctor) { d.judgePauses(facts{"latest_fork_usec": "10000001"}) }, failed},
		{"forks", func(d *doctor) { d.judgePauses(facts{"latest_fork_usec": "3000001"}) }, warned},
		{"a clock that agrees", func(d *doctor) { d.judgeClock(-time.Microsecond) }, good},
		{"a clock ahead", func(d *doctor) { d.judgeClock(6 * time.Second) }, warned},
		{"a clock behind", func(d *doctor) { d.judgeClock(-6 * time.Second) }, warned},
		{"evicted", func(d *doctor) {
			d.judgeEviction(facts{"maxmemory_policy": "allkeys-lfu", "evicted_keys": "1"})
		}, failed},
		{"nearly full", func(d *doctor) { d.judgeMemory(facts{"used_memory": "95", "maxmemory": "100"}) }, warned},
		{"snapshot failed", func(d *doctor) { d.judgePersistence(facts{"rdb_last_bgsave_status": "err"}, "", "yes") }, failed},
		{"file failed", func(d *doctor) {
			d.judgePersistence(facts{"aof_enabled": "1", "aof_last_write_status": "err"}, "", "")
		}, failed},
		{"no fsync", func(d *doctor) { d.judgePersistence(facts{"aof_enabled": "1"}, "no", "") }, warned},
		{"many clients", func(d *doctor) { d.judgeClients(facts{"connected_clients": "95", "maxclients": "100"}, "0") }, warned},
		{"a node out of reach", func(d *doctor) {
			d.judgeCluster(facts{"cluster_state": "ok", "cluster_slots_assigned": "16384", "cluster_slots_pfail": "9"})
		}, warned},
	} {
		d := &doctor{lease: 30 * time.Second}
		tt.judge(d)
		if got := d.findings[0]; got.Verdict != tt.want || got.Means == "" || strings.Contains(got.Means, " 0s ") {
			t.Errorf("%s: %+v, want %q", tt.name, got, tt.want)
		}
	}
}

// A server that has replied is not said to be silent. Of several, each must have replied.
func TestRefused(t *testing.T) {
	t.Parallel()
	reply := redis.TxFailedErr // of the type of all error replies
	for _, tt := range []struct {
		err    error
		doctor string
		all    string
	}{
		{reply, "the server refuses: redis: ", "redis refuses: redis: "},
		{fmt.Errorf("a: %w", reply), "the server refuses: a: redis: ", "redis refuses: a: redis: "},
		{errors.Join(reply, reply), "the server refuses: ", "redis refuses: "},
		{errors.Join(reply, io.EOF), "the server does not answer: ", "redis cannot be reached: "},
		{io.EOF, "the server does not answer: EOF", "redis cannot be reached: EOF"},
	} {
		if got := noAnswer(tt.err); !strings.HasPrefix(got, tt.doctor) {
			t.Errorf("%v: the doctor says %q", tt.err, got)
		}
		if got := (&unavailable{tt.err}).Error(); !strings.HasPrefix(got, tt.all) {
			t.Errorf("%v: %q", tt.err, got)
		}
	}
}
