package redistest

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// ServerOption changes how Start configures the server.
type ServerOption func(*serverConfig)

type serverConfig struct {
	password string
	extra    []string
}

// WithAOF makes the server write every command to disk before it answers, so
// that data survives Kill and Restart.
func WithAOF() ServerOption {
	return WithArgs("--appendonly", "yes", "--appendfsync", "always")
}

// WithArgs adds redis-server arguments; they override the package's own.
func WithArgs(args ...string) ServerOption {
	return func(c *serverConfig) { c.extra = append(c.extra, args...) }
}

// WithoutPassword lets clients in without AUTH. By default the server has a
// random password, so that no test can reach another one's server by mistake.
func WithoutPassword() ServerOption {
	return func(c *serverConfig) { c.password = "" }
}

// redisVersion matches what redis-server and valkey-server print.
var redisVersion = regexp.MustCompile(`v=(\d+)\.`)

// findRedis returns the server's path and its major version.
func findRedis() (bin string, major int, err error) {
	bin, err = exec.LookPath("redis-server")
	if err != nil {
		return "", 0, err
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
	return bin, major, err
}

func serverArgs(port int, dir string, major int, cfg serverConfig) []string {
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
	return append(args, cfg.extra...)
}
