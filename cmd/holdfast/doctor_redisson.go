package main

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/wire"
)

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
	channels, err := node.PubSubChannels(ctx, pattern).Result()
	if err != nil {
		return 0, err
	}
	counts, err := node.PubSubNumSub(ctx, channels...).Result()
	if err != nil {
		return 0, err
	}
	sharded, err := node.PubSubShardChannels(ctx, pattern).Result() // Redis 7
	if err == nil {
		var more map[string]int64
		if more, err = node.PubSubShardNumSub(ctx, sharded...).Result(); err == nil {
			for _, count := range more {
				n += count
			}
		}
	}
	if err != nil && !unknown(err) {
		return 0, err
	}
	for _, count := range counts {
		n += count
	}
	return n, nil
}
