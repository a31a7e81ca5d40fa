package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// inspect runs f with the admin client and a bounded context, and fails the
// server's test if f fails: a broken inspection proves nothing.
func (s *Server) inspect(what string, f func(ctx context.Context, rdb *redis.Client) error) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := f(ctx, s.Admin()); err != nil {
		s.tb.Fatalf("redistest: %s: %v", what, err)
	}
}

// Keys returns the names of all keys of database 0, sorted.
func (s *Server) Keys() []string {
	s.tb.Helper()
	var keys []string
	s.inspect("scan keys", func(ctx context.Context, rdb *redis.Client) error {
		iter := rdb.Scan(ctx, 0, "", 1000).Iterator()
		for iter.Next(ctx) {
			keys = append(keys, iter.Val())
		}
		return iter.Err()
	})
	slices.Sort(keys)
	return slices.Compact(keys) // SCAN may return a key twice
}

// RequireNoKeys fails the test if there is any key whose name has none of the
// prefixes allow. It looks once and does not wait.
func (s *Server) RequireNoKeys(tb testing.TB, allow ...string) {
	tb.Helper()
	keys := slices.DeleteFunc(s.Keys(), func(k string) bool { return hasAnyPrefix(k, allow) })
	if len(keys) > 0 {
		tb.Fatalf("redistest: %d keys left on the server: %q", len(keys), keys)
	}
}

// AwaitNone waits until there is no such key.
func (s *Server) AwaitNone(tb testing.TB, key string) {
	tb.Helper()
	Eventually(tb, Patience, key+" is gone", func() bool { return s.Admin().Exists(tb.Context(), key).Val() == 0 })
}

// RequireTTLs fails the test if any key has no TTL, which is a lock held for
// ever. Keys whose name has one of the prefixes allow are exempt.
func (s *Server) RequireTTLs(tb testing.TB, allow ...string) {
	tb.Helper()
	var forever []string
	for _, key := range s.Keys() {
		if hasAnyPrefix(key, allow) {
			continue
		}
		s.inspect("pttl", func(ctx context.Context, rdb *redis.Client) error {
			ttl, err := rdb.PTTL(ctx, key).Result()
			if ttl == -1 { // -2 is a key that has expired since the scan
				forever = append(forever, key)
			}
			return err
		})
	}
	if len(forever) > 0 {
		tb.Fatalf("redistest: %d keys without TTL: %q", len(forever), forever)
	}
}

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// NumSub returns how many connections are subscribed to channel by name.
func (s *Server) NumSub(channel string) int64 {
	s.tb.Helper()
	var n int64
	s.inspect("pubsub numsub", func(ctx context.Context, rdb *redis.Client) error {
		subs, err := rdb.PubSubNumSub(ctx, channel).Result()
		n = subs[channel]
		return err
	})
	return n
}

// CommandCalls returns how often the named commands were executed since the
// server's start or ResetStats. Subcommands count for their container, so
// "client" includes CLIENT SETINFO. Commands that scripts call count too; to
// count only what clients send, use Proxy.Count.
//
// Without names it counts all commands but INFO and CONFIG, which CommandCalls
// and ResetStats use themselves.
func (s *Server) CommandCalls(names ...string) int64 {
	s.tb.Helper()
	var total int64
	s.inspect("command stats", func(ctx context.Context, rdb *redis.Client) error {
		info, err := rdb.Info(ctx, "commandstats").Result()
		if err != nil {
			return err
		}
		total, err = sumCalls(info, names)
		return err
	})
	return total
}

// sumCalls adds up lines such as "cmdstat_client|setinfo:calls=2,usec=3,...".
func sumCalls(info string, names []string) (int64, error) {
	var total int64
	for line := range strings.Lines(info) {
		stat, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue
		}
		full, fields, _ := strings.Cut(stat, ":")
		name, _, _ := strings.Cut(full, "|")
		if len(names) == 0 {
			if name == "info" || name == "config" {
				continue
			}
		} else if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(fields, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("in %q: %w", line, err)
		}
		total += n
	}
	return total, nil
}

// ResetStats sets the counts of CommandCalls to zero.
func (s *Server) ResetStats() {
	s.tb.Helper()
	s.inspect("reset stats", func(ctx context.Context, rdb *redis.Client) error {
		return rdb.ConfigResetStat(ctx).Err()
	})
}

// infoField returns the value of one field of INFO's reply, or "".
func infoField(info, field string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// AOF returns the commands of the server's append-only file: every write it has
// executed, in order, over all restarts. The server needs WithAOF. What a running
// server is writing at this moment may be missing.
//
// Relative times are absolute there (PEXPIREAT), a script stands as what it wrote, and
// several writes of one script are between MULTI and EXEC. A key that expired is a DEL.
func (s *Server) AOF() [][]string {
	s.tb.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err == nil && len(files) == 0 { // servers before 7 write a single file
		files = []string{filepath.Join(s.dir, "appendonly.aof")}
	}
	slices.Sort(files)
	var cmds [][]string
	for _, file := range files {
		more, readErr := readAOF(file)
		err = errors.Join(err, readErr)
		cmds = append(cmds, more...)
	}
	if err != nil {
		s.tb.Fatalf("redistest: read the append-only file: %v", err)
	}
	return cmds
}

// readAOF stops at a command that was cut off, as Redis does when it loads the file.
func readAOF(file string) (cmds [][]string, err error) {
	left, err := os.ReadFile(file)
	for {
		cmd, rest, wrong := vredis.ParseCommand(left)
		switch {
		case wrong != "":
			return nil, fmt.Errorf("%s: %s", file, wrong)
		case cmd == nil:
			return cmds, err
		}
		cmds, left = append(cmds, cmd), rest
	}
}
