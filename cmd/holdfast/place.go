package main

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Place is where a lock is, and what there is beside it. It is exported for its JSON.
type Place struct {
	Tombstones  int    `json:"tombstones"`  // owner ids whose late requests are refused
	Subscribers int64  `json:"subscribers"` // connections that listen to the channels on which a release is announced
	Slot        uint16 `json:"slot"`
	Node        string `json:"node,omitempty"` // of a cluster
}

// findPlace asks for what Inspect does not.
func findPlace(ctx context.Context, client redis.UniversalClient, mapped string) (*Place, error) {
	p := &Place{Slot: wire.Slot(mapped)}
	n, err := client.ZCount(ctx, wire.NewKeys(mapped).Tombstones.(string), "-inf", "+inf").Result()
	if err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return nil, err
	}
	p.Tombstones = int(n)
	lock, rw := wire.Channels(mapped)
	node := redis.Cmdable(client)
	if cluster, ok := client.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, mapped)
		if err != nil {
			return nil, err
		}
		node, p.Node = master, master.Options().Addr
		sharded, err := node.PubSubShardNumSub(ctx, lock, rw).Result()
		if err != nil && !unknown(err) {
			return nil, err
		}
		p.Subscribers += sharded[lock] + sharded[rw]
	}
	classic, err := node.PubSubNumSub(ctx, lock, rw).Result()
	if err != nil {
		return nil, err
	}
	p.Subscribers += classic[lock] + classic[rw]
	return p, nil
}
