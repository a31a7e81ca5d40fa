package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/command"
)

// redisFlags are those of every command that asks Redis.
func redisFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{
			Name: "redis",
			Usage: "ask the Redis at `URL`: redis://user:password@host:6379/0, rediss:// with TLS, unix:///path, redis+cluster://host,host,\n" +
				"redis+sentinel://host,host/master; by default what HOLDFAST_REDIS or REDIS_URL says, or " + defaultRedis,
		},
		&cli.StringFlag{Name: "prefix", Usage: "put `TEXT` before each name, as the programs' name mapper does"},
		&cli.DurationFlag{Name: "timeout", Value: 5 * time.Second, Usage: "wait at most `TIME` for a connection, and for an answer of Redis"},
		&cli.BoolFlag{Name: "no-color", Usage: "use no colours; NO_COLOR in the environment means the same"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing but errors"},
	}, tlsFlags()...)
}

// connection is the Redis deployments that a command asks.
type connection struct {
	clients  []redis.UniversalClient
	managers []*holdfast.Manager
	down     []error // of each, when the command began; nil: it answered
}

// connect opens the deployments of --redis and finds out whether they answer. All but a minority must: several are the
// members of a Redlock.
func connect(ctx context.Context, c *cli.Command, opts ...holdfast.Option) (_ *connection, err error) {
	conn := new(connection)
	defer func() {
		if err != nil {
			conn.close()
		}
	}()
	opts = append([]holdfast.Option{holdfast.WithLogger(slog.New(slog.DiscardHandler))}, opts...) // the command says what goes wrong
	if prefix := c.String("prefix"); prefix != "" {
		opts = append(opts, holdfast.WithNameMapper(func(name string) string { return prefix + name }))
	}
	for i, u := range redisURLs(c) {
		client, err := openClient(u, c.Duration("timeout"), encryptionOf(c))
		if err != nil {
			return nil, &badUsage{fmt.Errorf("URL %d of --redis %w", i+1, err)}
		}
		conn.clients = append(conn.clients, client)
		m, err := holdfast.New(client, opts...)
		if err != nil {
			return nil, &badUsage{err}
		}
		conn.managers = append(conn.managers, m)
	}
	return conn, conn.ping(ctx, redisURLs(c), c.Duration("timeout"))
}

// ping asks all deployments at the same time.
func (conn *connection) ping(ctx context.Context, urls []string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn.down = make([]error, len(conn.clients))
	var asking sync.WaitGroup
	for i, client := range conn.clients {
		asking.Go(func() { conn.down[i] = cause(urls[i], client, timeout, answers(ctx, client)) })
	}
	asking.Wait()
	var failed []error
	for _, err := range conn.down {
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed)*2 < len(conn.clients) {
		return nil
	}
	return &unavailable{errors.Join(failed...)}
}

// answers returns nil if a server answers: of a cluster, one of the masters. What the others' locks are asked says the rest.
func answers(ctx context.Context, client redis.UniversalClient) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return client.Ping(ctx).Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var one atomic.Bool
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		err := c.Ping(ctx).Err()
		if err == nil {
			one.Store(true)
			cancel() // the others are not waited for
		}
		return err
	})
	if one.Load() {
		return nil
	}
	return err
}

// alone fails if a server is one of a cluster that its URL does not name: it would show its own locks as if there were no others.
func (conn *connection) alone(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, client := range conn.clients {
		single, ok := client.(*redis.Client)
		if !ok {
			continue
		}
		said, _ := single.Do(ctx, "hello").Result() // a proxy may not know it
		if about, _ := said.(map[any]any); about["mode"] == "cluster" {
			addr := printable(single.Options().Addr)
			return &badUsage{fmt.Errorf("%s is one server of a cluster, and has only some of its locks: use redis+cluster://%s", addr, addr)}
		}
	}
	return nil
}

// close gives back what is held and ends all connections. It is bounded.
func (conn *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, m := range conn.managers {
		_ = m.Close(ctx)
	}
	for _, client := range conn.clients {
		_ = client.Close()
	}
}

// badUsage is the error of a command that was not understood.
type badUsage struct{ err error }

func (e *badUsage) Error() string { return e.err.Error() }
func (e *badUsage) Unwrap() error { return e.err }

// unavailable is the error of a Redis that cannot be reached, or refuses to answer.
type unavailable struct{ err error }

func (e *unavailable) Error() string {
	if refused(e.err) {
		return "redis refuses: " + e.err.Error()
	}
	return "redis cannot be reached: " + e.err.Error()
}
func (e *unavailable) Unwrap() error { return e.err }

// refused reports whether err is a reply of Redis, of several errors whether each is.
func refused(err error) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(several.Unwrap(), func(one error) bool { return !refused(one) })
	}
	return command.Refuses(err)
}

// withoutPrefix returns the text of an error of the library, which begins with this program's name.
func withoutPrefix(err error) string { return strings.TrimPrefix(err.Error(), "holdfast: ") }

// silent is an exit status about which everything has been said.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitCode makes silent a cli.ExitCoder.
func (s silent) ExitCode() int { return int(s) }

// teller writes lines for people to stderr. If no process reads stderr any more, it writes nothing.
type teller struct {
	w     io.Writer
	quiet bool
}

func newTeller(c *cli.Command) teller { return teller{c.Root().ErrWriter, c.Bool("quiet")} }

// say is for what people should know.
func (t teller) say(format string, args ...any) {
	if !t.quiet {
		t.insist(format, args...)
	}
}

// insist is for what people must know.
func (t teller) insist(format string, args ...any) {
	fmt.Fprintf(t.w, "holdfast: "+format+"\n", args...)
}
