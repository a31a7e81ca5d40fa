package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// connect returns a client that has reached its server.
func connect(ctx context.Context, redisURL string) (*redis.Client, error) {
	opt, err := redis.ParseURL(redisURL)
	if bad := (*url.Error)(nil); errors.As(err, &bad) {
		err = bad.Err // which does not repeat the URL, with its password
	}
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	rdb := redis.NewClient(opt)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("no usable Redis at %s: %w", opt.Addr, err), rdb.Close())
	}
	return rdb, nil
}

// dial opens a connection to the server of rdb, without a password.
func dial(ctx context.Context, rdb *redis.Client) func() (net.Conn, error) {
	opt := rdb.Options()
	return func() (net.Conn, error) { return opt.Dialer(ctx, opt.Network, opt.Addr) }
}

// urlThrough is the URL of the server of rdb for a process that reaches it through l. The process's client waits for the
// replies to requests that are held back for as long as a scenario may take.
func urlThrough(l *line, rdb *redis.Client) string {
	opt := rdb.Options()
	u := url.URL{Scheme: "redis", Host: l.listener.Addr().String(), Path: "/" + strconv.Itoa(opt.DB), RawQuery: "read_timeout=" + playWithin.String()}
	if opt.Password != "" {
		u.User = url.UserPassword(opt.Username, opt.Password)
	}
	return u.String()
}

// clean removes every key of the run, including those of processes that were killed. The keys that a lock derives from its
// name contain the name, and with it the id of the run.
func clean(ctx context.Context, rdb *redis.Client, id string) error {
	keys := rdb.Scan(ctx, 0, "*"+id+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := rdb.Del(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("remove the keys of this run: %w", err)
		}
	}
	return keys.Err()
}
