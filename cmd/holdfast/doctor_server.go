package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// facts is what a server says of itself: INFO, CLUSTER INFO.
type facts map[string]string

func readFacts(text string) facts {
	f := make(facts)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

func (f facts) number(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64) // 0 if it is not there
	return n
}

// server returns which server it is, and its version.
func (f facts) server() (name, version string) {
	if v := f["valkey_version"]; v != "" {
		return "valkey", v
	}
	return "redis", f["redis_version"]
}

// noAnswer says that a server does not tell what it is.
func noAnswer(err error) string {
	if refused(err) {
		return "the server refuses: " + plain(err)
	}
	return "the server does not answer: " + plain(err)
}

// lookAt checks one server's settings and reports whether it takes writes.
func (d *doctor) lookAt(ctx context.Context, node *redis.Client, timeout time.Duration) (writable bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	text, err := node.Info(ctx).Result()
	switch {
	case denied(err):
		d.add(checkServer, note, "", "the user may not use INFO, so the settings of the server are not checked; check them as another user")
		return true
	case err != nil && node.Ping(ctx).Err() == nil: // a proxy, for example
		d.add(checkServer, note, "", "PING is answered and INFO is not, so the settings of the server are not checked: %s", plain(err))
		return true
	case err != nil:
		d.add(checkServer, failed, "", "%s", noAnswer(err))
		return false
	}
	info := readFacts(text)
	setting := func(name string) string { return node.ConfigGet(ctx, name).Val()[name] } // empty: it is not allowed to ask
	d.judgeServer(info)
	writable = d.judgeRole(info)
	if _, alone := d.at.client.(*redis.Client); alone && info["redis_mode"] == "cluster" {
		url := "redis+cluster://" + printable(node.Options().Addr)
		d.add(checkCluster, failed, "holdfast doctor --redis "+url, "this is one server of a cluster, and it refuses the locks of the others: use %s", url)
		writable = false
	} else if info["redis_mode"] == "cluster" {
		if text, err := node.ClusterInfo(ctx).Result(); err == nil {
			d.judgeCluster(readFacts(text))
		}
	}
	d.judgeEviction(info)
	d.judgeMemory(info)
	d.judgePersistence(info, setting("appendfsync"), setting("stop-writes-on-bgsave-error"))
	d.judgeReplicas(info, setting("min-replicas-to-write"))
	d.judgeClients(info, setting("timeout"))
	d.judgePauses(info)
	return writable
}

// oldest is the oldest version of Redis that Holdfast supports.
var oldest = []int{6, 2, 14}

func (d *doctor) judgeServer(info facts) {
	name, version := info.server()
	what := fmt.Sprintf("%s %s, %s", name, printable(version), printable(info["redis_mode"]))
	var parts []int
	for _, p := range strings.Split(version, ".") {
		n, err := strconv.Atoi(p)
		if err != nil {
			break
		}
		parts = append(parts, n)
	}
	switch {
	case len(parts) == 0:
		d.add(checkServer, warned, "", "%s: this server does not name a version of Redis or Valkey that Holdfast is tested on", what)
	case name == "redis" && slices.Compare(parts, oldest) < 0:
		d.add(checkServer, failed, "", "%s: older than 6.2.14, which Holdfast needs", what)
	default:
		d.add(checkServer, good, "", "%s", what)
	}
}

func (d *doctor) judgeRole(info facts) bool {
	if info["role"] != "slave" {
		d.add(checkRole, good, "", "a master")
		return true
	}
	master := info["master_host"] + ":" + info["master_port"]
	d.add(checkRole, failed, "holdfast doctor --redis redis://"+printable(master), "a replica: it refuses writes, so no lock can be taken here")
	return false
}

func (d *doctor) judgeCluster(c facts) {
	const slots = 16384
	down := slots - c.number("cluster_slots_assigned") + c.number("cluster_slots_fail")
	switch {
	case c["cluster_state"] != "ok" || down > 0:
		d.add(checkCluster, failed, "CLUSTER NODES", "the state is %s, and %d of %d slots have no server: their locks cannot be used", printable(c["cluster_state"]), down, slots)
	case c.number("cluster_slots_pfail") > 0:
		d.add(checkCluster, warned, "CLUSTER NODES", "%d slots are on a server that this one does not reach", c.number("cluster_slots_pfail"))
	default:
		d.add(checkCluster, good, "", "all slots are served by %s masters", printable(c["cluster_size"]))
	}
}

func (d *doctor) judgeEviction(info facts) {
	const cure = "CONFIG SET maxmemory-policy noeviction"
	policy := info["maxmemory_policy"]
	switch {
	case policy == "noeviction":
		d.add(checkEviction, good, "", "noeviction: Redis deletes no lock to make room")
	case policy == "":
		d.add(checkEviction, note, "", "the server does not say whether it evicts keys")
	case info.number("evicted_keys") > 0:
		d.add(checkEviction, failed, cure, "%s, and %d keys were evicted: locks of living holders can be deleted", printable(policy), info.number("evicted_keys"))
	case info.number("maxmemory") == 0:
		d.add(checkEviction, warned, cure, "%s: locks of living holders can be deleted as soon as maxmemory is set", printable(policy))
	default:
		d.add(checkEviction, failed, cure, "%s: when the memory is full, Redis deletes locks of living holders", printable(policy))
	}
}

func (d *doctor) judgeMemory(info facts) {
	used, most := info.number("used_memory"), info.number("maxmemory")
	const cure = "CONFIG SET maxmemory BYTES"
	switch {
	case most == 0:
		d.add(checkMemory, good, "", "no limit; %s are used", size(used))
	case used >= most:
		d.add(checkMemory, failed, cure, "full: %s of %s; new locks are refused, or keys are evicted", size(used), size(most))
	case used >= most-most/10:
		d.add(checkMemory, warned, cure, "nearly full: %s of %s; a full server refuses new locks", size(used), size(most))
	default:
		d.add(checkMemory, good, "", "%s of %s are used", size(used), size(most))
	}
}

// size is a number of bytes as people read it.
func size(bytes int64) string {
	switch {
	case bytes < 1<<20:
		return fmt.Sprintf("%d kB", bytes>>10)
	case bytes < 10<<30:
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d GB", bytes>>30)
}

func (d *doctor) judgePersistence(info facts, fsync, stops string) {
	switch {
	case info["rdb_last_bgsave_status"] == "err" && stops != "no":
		d.add(checkPersistence, failed, "INFO persistence", "the last snapshot failed: Redis refuses writes until one succeeds, unless stop-writes-on-bgsave-error is no")
	case info["aof_enabled"] == "1" && info["aof_last_write_status"] == "err":
		d.add(checkPersistence, failed, "INFO persistence", "the append-only file cannot be written: Redis refuses writes")
	case info["aof_enabled"] != "1":
		d.add(checkPersistence, warned, "CONFIG SET appendonly yes", "no append-only file: a restart forgets the locks since the last snapshot, and other callers get them while their holders work")
	case fsync == "no":
		d.add(checkPersistence, warned, "CONFIG SET appendfsync everysec", "appendfsync is no: after a power cut, the locks of the last half minute can be missing")
	case fsync == "":
		d.add(checkPersistence, good, "", "append-only file: a restart keeps the locks; how often it reaches the disk is not known, without CONFIG")
	default:
		d.add(checkPersistence, good, "", "append-only file: a restart keeps the locks")
	}
}

func (d *doctor) judgeReplicas(info facts, least string) {
	has := info.number("connected_slaves")
	fresh := has
	if _, ok := info["min_slaves_good_slaves"]; ok {
		fresh = info.number("min_slaves_good_slaves")
	}
	if need, err := strconv.ParseInt(least, 10, 64); err == nil && fresh < need {
		d.add(checkReplicas, failed, fmt.Sprintf("CONFIG SET min-replicas-to-write %d", fresh), "min-replicas-to-write is %d, and %d replicas are fit: Redis refuses writes, so no lock can be taken. Bring the replicas back, or ask for fewer", need, fresh)
		return
	}
	d.add(checkReplicas, good, "", "%d replicas; a fail-over can lose the newest locks", has)
}

func (d *doctor) judgeClients(info facts, timeout string) {
	now, most := info.number("connected_clients"), info.number("maxclients")
	idle, _ := strconv.Atoi(timeout)
	switch {
	case most > 0 && now >= most-most/10:
		d.add(checkClients, warned, "CLIENT LIST", "%d of at most %d clients: the next ones are refused", now, most)
	case idle > 0 && idle < 10:
		d.add(checkClients, warned, "CONFIG SET timeout 0", "the server closes connections that are idle for %d s, so that calls connect anew", idle)
	default:
		d.add(checkClients, good, "", "%d of at most %d", now, most)
	}
}

func (d *doctor) judgePauses(info facts) {
	fork := time.Duration(info.number("latest_fork_usec")) * time.Microsecond
	switch {
	case fork > d.lease/3:
		d.add(checkPauses, failed, "INFO stats", "the last fork of the server took %v, more than a third of a lease of %v: renewals are late", fork, d.lease)
	case fork > d.lease/10:
		d.add(checkPauses, warned, "INFO stats", "the last fork of the server took %v, more than a tenth of a lease of %v", fork, d.lease)
	default:
		d.add(checkPauses, good, "", "the last fork took %v", fork)
	}
}

// noteRedisson says whether clients of Redisson share the locks: how many they hold, and how many connections listen for
// releases as their waiters do. Processes of Holdfast listen there too while Redisson holds a lock.
func (d *doctor) noteRedisson(ctx context.Context, looks []look) {
	held := 0
	for _, l := range looks {
		if slices.ContainsFunc(l.Holders, func(h lookHolder) bool { return !h.Holdfast }) {
			held++
		}
	}
	nodes, err := masters(ctx, d.at.client)
	if err != nil {
		return // another check has said so
	}
	listening := int64(0)
	lock, rw := wire.Channels("*")
	for _, node := range nodes {
		for _, pattern := range []string{lock, rw} {
			n, err := listenersOf(ctx, node, pattern)
			if err != nil {
				d.add(checkRedisson, note, "", "%d locks are held by Redisson's clients; how many wait is not known: %s", held, plain(err))
				return
			}
			listening += n
		}
	}
	d.add(checkRedisson, note, "", "%d locks are held by Redisson's clients; %d connections listen for releases as these do", held, listening)
}

// listenersOf counts the connections that listen to channels of a pattern, sharded ones included.
func listenersOf(ctx context.Context, node *redis.Client, pattern string) (n int64, err error) {
	classic, err := node.PubSubChannels(ctx, pattern).Result()
	if err != nil {
		return 0, err
	}
	sharded, err := node.PubSubShardChannels(ctx, pattern).Result()
	if err != nil && !unknown(err) { // before Redis 7
		return 0, err
	}
	return listeners(ctx, node, classic, sharded)
}

// listeners counts the connections that listen to channels.
func listeners(ctx context.Context, node redis.Cmdable, classic, sharded []string) (n int64, err error) {
	counts, err := node.PubSubNumSub(ctx, classic...).Result()
	if err != nil {
		return 0, err
	}
	for _, count := range counts {
		n += count
	}
	if len(sharded) == 0 {
		return n, nil
	}
	counts, err = node.PubSubShardNumSub(ctx, sharded...).Result()
	if err != nil && !unknown(err) { // before Redis 7
		return 0, err
	}
	for _, count := range counts {
		n += count
	}
	return n, nil
}
