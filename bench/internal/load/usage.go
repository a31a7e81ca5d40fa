package load

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Usage is what clients have cost since a moment: the commands that they sent, which is
// the number of requests on the network, and the CPU time that Redis took for them.
//
// Redis's own statistics also count each command that a script calls, and do not tell
// them apart. But most of what lock libraries send themselves is not allowed in
// scripts, or called by none, and so is counted by its name; where a library sends a
// command that scripts of others call, its entry in the table of libraries says so.
type Usage struct {
	server *Server
	direct []string
	from   Tally
}

// Tally is a cost of clients.
type Tally struct {
	Commands int64
	CPU      time.Duration // of the server, socket I/O included
}

// Usage counts from now on. direct is that of the library whose clients there are.
func (s *Server) Usage(ctx context.Context, direct []string) (*Usage, error) {
	u := &Usage{server: s, direct: direct}
	return u, u.Restart(ctx)
}

// Restart counts from now on.
func (u *Usage) Restart(ctx context.Context) (err error) {
	u.from, err = u.now(ctx)
	return err
}

// SoFar returns the cost up to now.
func (u *Usage) SoFar(ctx context.Context) (Tally, error) {
	now, err := u.now(ctx)
	return Tally{now.Commands - u.from.Commands, now.CPU - u.from.CPU}, err
}

// fromClients are the commands that lock libraries send and no script calls, without
// those that open a connection (HELLO, CLIENT, AUTH): these come now and then, in
// whatever scenario needs one more.
var fromClients = map[string]bool{
	"eval": true, "evalsha": true, "eval_ro": true, "evalsha_ro": true, "fcall": true, "fcall_ro": true,
	"script": true, "function": true,
	"subscribe": true, "unsubscribe": true, "psubscribe": true, "punsubscribe": true,
	"ssubscribe": true, "sunsubscribe": true,
	"multi": true, "exec": true, "watch": true, "wait": true,
	"ping": true,
}

// now is the cost since the server started.
func (u *Usage) now(ctx context.Context) (Tally, error) {
	var t Tally
	stats, err := u.server.admin.Info(ctx, "commandstats").Result()
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(stats) {
		// cmdstat_script|load:calls=8,usec=4,usec_per_call=0.50,...
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "cmdstat_")
		if !ok {
			continue
		}
		name, stats, _ := strings.Cut(line, ":")
		name, _, _ = strings.Cut(name, "|")
		if !fromClients[name] && !slices.Contains(u.direct, name) {
			continue
		}
		var calls int64
		if _, err := fmt.Sscanf(stats, "calls=%d,", &calls); err != nil {
			return t, fmt.Errorf("commandstats: %q: %w", line, err)
		}
		t.Commands += calls
	}
	cpu, err := u.server.admin.Info(ctx, "cpu").Result()
	if err != nil {
		return t, err
	}
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(field(cpu, name), 64)
		if err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
		t.CPU += time.Duration(seconds * float64(time.Second))
	}
	return t, nil
}
