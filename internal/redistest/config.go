package redistest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ServerOption changes how Start configures the server.
type ServerOption func(*serverConfig)

type serverConfig struct {
	password string
	aof      bool
	extra    []string
	plain    bool     // without sharded messages
	cluster  bool     // a node of a cluster: listens on a second port, the bus
	sentinel []string // lines of a sentinel's configuration; nil: a server
}

// WithAOF makes the server write every command to disk before it answers, so
// that data survives Kill and Restart.
func WithAOF() ServerOption {
	return func(c *serverConfig) { c.aof = true }
}

// WithArgs adds redis-server arguments; they override the package's own. Only a process has them.
func WithArgs(args ...string) ServerOption {
	return func(c *serverConfig) { c.extra = append(c.extra, args...) }
}

// WithoutShardedMessages takes the commands of sharded messages away, which came with Redis 7.
func WithoutShardedMessages() ServerOption {
	return func(c *serverConfig) { c.plain = true }
}

// WithoutPassword lets clients in without AUTH. By default the server has a
// random password, so that no test can reach another one's server by mistake.
func WithoutPassword() ServerOption {
	return func(c *serverConfig) { c.password = "" }
}

// redisVersion matches what redis-server and valkey-server print.
var redisVersion = regexp.MustCompile(`v=(\d+)\.`)

// shardedCommands are those of sharded messages, and shardedFrom is the version that brought them.
var shardedCommands = []string{"spublish", "ssubscribe", "sunsubscribe"}

const shardedFrom = 7

// logEnv, if it is set, has the end of a server's log printed with each test that fails. By default it is with a
// server that has died by itself.
const logEnv = "HOLDFAST_TEST_SERVER_LOG"

// serverEnv names another server than redis-server, such as valkey-server or a path.
const serverEnv = "HOLDFAST_TEST_SERVER"

// quickEnv, if it is set, has tests on real servers leave out what runs in fake time as well, or repeats others with other
// kinds, modes and clients, and benchmarks be brief. make test and make bench-once set it.
const quickEnv = "HOLDFAST_TEST_QUICK"

// Quick reports whether tests on real servers leave out repetitions.
func Quick() bool { return os.Getenv(quickEnv) != "" }

// Raced reports whether this program was built with the race detector.
func Raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// findRedis returns the server's path and its major version.
func findRedis() (bin string, major int, err error) {
	bin, err = exec.LookPath(cmp.Or(os.Getenv(serverEnv), "redis-server"))
	if err != nil {
		return "", 0, err
	}
	if known, ok := majors.Load(bin); ok {
		return bin, known.(int), nil
	}
	out, err := exec.Command(bin, "--version").Output()
	if err != nil {
		return "", 0, fmt.Errorf("%s --version: %w", bin, err)
	}
	m := redisVersion.FindSubmatch(out)
	if m == nil {
		return "", 0, fmt.Errorf("%s --version: no version in %q", bin, out)
	}
	major, err = strconv.Atoi(string(m[1]))
	if err == nil {
		majors.Store(bin, major)
	}
	return bin, major, err
}

// majors has the major versions of servers by their paths: asking takes about as long as a server's start.
var majors sync.Map

// busOffset is how far the port of the cluster bus is behind the other one before Redis 7, where it can be chosen.
const busOffset = 10000

// reserveBus reserves the port of the cluster bus; 0 if there is none. Before Redis 7 that one may be taken: the error says
// "address already in use".
func reserveBus(cfg serverConfig, major, port int) (bus int, release func(), err error) {
	switch {
	case !cfg.cluster:
		return 0, func() {}, nil
	case major >= 7:
		return reservePort(0)
	case port+busOffset > 65535:
		return 0, nil, fmt.Errorf("reserve port: %d has no bus port: address already in use", port)
	}
	return reservePort(port + busOffset)
}

func serverArgs(port, bus int, dir string, major int, cfg serverConfig) ([]string, error) {
	if cfg.sentinel != nil {
		return sentinelArgs(port, dir, cfg)
	}
	args := []string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
		"--save", "", "--repl-diskless-sync-delay", "0",
	}
	if major >= 7 { // older servers allow DEBUG and do not know the setting
		args = append(args, "--enable-debug-command", "yes")
	}
	if cfg.password != "" {
		args = append(args, "--requirepass", cfg.password, "--masterauth", cfg.password)
	}
	if cfg.cluster {
		args = append(args, "--cluster-enabled", "yes")
		if major >= 7 {
			args = append(args, "--cluster-port", strconv.Itoa(bus))
		}
	}
	if cfg.aof {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if cfg.plain && major >= shardedFrom {
		for _, command := range shardedCommands {
			args = append(args, "--rename-command", command, "")
		}
	}
	return append(args, cfg.extra...), nil
}

// sentinelArgs writes the file that a sentinel keeps its state in, over restarts too.
func sentinelArgs(port int, dir string, cfg serverConfig) ([]string, error) {
	lines := append([]string{
		"bind 127.0.0.1", "port " + strconv.Itoa(port), "dir " + dir, "requirepass " + cfg.password,
	}, cfg.sentinel...)
	file := filepath.Join(dir, "sentinel.conf")
	err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	return []string{file, "--sentinel"}, err
}
