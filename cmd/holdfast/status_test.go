//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What each command says, and its exit status: of what is wrong with the command line, with servers as a person on call meets them, and
// with locks. None of these rows prints to stdout, so no command of run or lead is run that is not to be run.
func TestStatus(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	do(t, srv, "acl", "setuser", "guest", "on", ">secret", "~*", "&*", "+ping", "+hello", "+client")
	for key, fields := range map[string][]any{"user:1": {"name", "Ada", "mail", "x"}, "votes": {"candidate:7", 12}, "schema": {aliceID + ":write", 1, "mode", "write"}} {
		must(t, srv.Admin().HSet(t.Context(), key, fields...).Err())
	}
	for _, key := range []string{"a string", "holdfast_leader:{kind}"} {
		must(t, srv.Admin().Set(t.Context(), key, "x", 0).Err())
	}
	hold(t, srv, "held")
	_, err := other(t, srv).RWMutex("rw").RLock(t.Context())
	must(t, err)
	dead, master, replica := redistest.Start(t), redistest.Start(t, redistest.WithoutPassword()), redistest.Start(t, redistest.WithoutPassword())
	dead.Kill()
	host, port, _ := strings.Cut(master.Addr(), ":")
	do(t, replica, "replicaof", host, port)
	dir := t.TempDir()
	garbage, bare := filepath.Join(dir, "garbage"), filepath.Join(dir, "bare")
	for file, text := range map[string]string{garbage: "no\x00program\n", bare: "exit $1\n"} {
		must(t, os.WriteFile(file, []byte(text), 0o700))
	}
	noRights, three := "redis://guest:secret@"+srv.Addr(), strings.Repeat(urlOf(srv)+" ", 3)
	ran := []string{"echo", "ran"}
	type row struct {
		url    string // empty: that of srv
		args   []string
		status int
		stderr string // a pattern
	}
	rows := []row{
		{urlOf(dead), []string{"ls"}, 5, `redis cannot be reached: .*connection refused`},
		{urlOf(dead), []string{"inspect", "x"}, 5, `redis cannot be reached: .*connection refused`},
		{urlOf(dead), []string{"unlock", "x", "--force"}, 5, `redis cannot be reached: .*connection refused`},
		{urlOf(dead), []string{"wait", "x"}, 125, `redis cannot be reached: .*connection refused`},
		{"redis://:wrong@" + srv.Addr(), []string{"ls"}, 5, `redis refuses: WRONGPASS`},
		{noRights, []string{"ls"}, 5, `redis refuses: NOPERM`},
		{noRights, []string{"inspect", "x"}, 5, `NOPERM`},
		{noRights, []string{"unlock", "x", "--force"}, 5, `NOPERM`},
		{"", []string{"ls", "a", "b"}, 2, `one pattern is enough`},
		{"", []string{"ls", "-o", "xml"}, 2, `--output is table, wide, json, jsonl or name, not "xml"`},
		{"", []string{"ls", "--limit=0"}, 2, `--limit must be positive`},
		{"", []string{"ls", "--watch=1ms"}, 2, `--watch must be at least 100ms`},
		{"", []string{"ls", "--watch=1s", "-o", "json"}, 2, `use jsonl`},
		{urlOf(dead), []string{"ls", "--watch=1s"}, 5, `redis cannot be reached: .*connection refused`},
		{"", []string{"ls", "--for=0s"}, 2, `--for must be positive`},
		{"", []string{"inspect"}, 2, `a lock's name is needed`},
		{"", []string{"inspect", "{}"}, 2, `invalid lock name`},
		{"", []string{"unlock"}, 2, `one lock's name is needed`},
		{"", []string{"unlock", "held"}, 4, `held is held by hf-.*\nholdfast: not freed: without a terminal to ask at, --force or --owner is needed\n$`},
		{"", []string{"unlock", "held", "--owner=" + aliceID}, 4, `\nholdfast: not freed: held is not held by ` + aliceID + `\n$`},
		{"", []string{"unlock", "held", "--owner="}, 4, `not freed: held is not held by ""\n$`},
		{"", []string{"unlock", "gone", "--owner=" + aliceID}, 3, `^holdfast: gone is free\n$`},
		{noRights, []string{"unlock", "held", "--owner=" + aliceID}, 5, `NOPERM`},
		{"", []string{"unlock", "user:1", "--force"}, 4, `user:1: the key holds no lock\n$`},
		{"", []string{"unlock", "votes", "--force"}, 4, `votes: the key holds no lock\n$`},
		{"", []string{"unlock", "gone", "--force"}, 3, `^holdfast: gone is free\n$`},
		{"", []string{"unlock", "schema", "--owner=" + aliceID}, 0, `schema is freed`},
		{"", []string{"wait", "held", "-w", "10ms"}, 124, `^holdfast: held is held by hf-`},
		{"", []string{"wait", "gone"}, 0, `^$`},
		{"", []string{"wait", "user:1"}, 125, `user:1: the key holds no lock\n$`},
		{"", []string{"top", "a", "b"}, 2, `one pattern is enough`},
		{"", []string{"top", "--every=1ms"}, 2, `--every must be at least 100ms`},
		{"", []string{"top", "--sort=name"}, 2, `--sort is waiting, handoffs, age or ttl, not "name"`},
		{urlOf(dead), []string{"top"}, 5, `redis cannot be reached: .*connection refused`},
		{noRights, []string{"top", "--once"}, 5, `NOPERM`},
		{noRights, []string{"bench"}, 4, `the number of clients is not known`},
		{"", []string{"bench", "--for=1ms"}, 2, `--for must be at least 100ms`},
		{"", []string{"bench", "--procs=0"}, 2, `--procs must be between 1 and 64`},
		{"", []string{"demo", "--redis=" + urlOf(dead)}, 1, `no usable Redis: server at ` + dead.Addr() + `: .*connection refused`},
		{urlOf(dead), []string{"bench"}, 5, `redis cannot be reached: .*connection refused`},
		{urlOf(srv) + " " + urlOf(srv), []string{"bench"}, 2, `a Redlock has three servers or more, and --redis names 2`},
		{urlOf(srv) + " " + urlOf(dead) + " " + urlOf(dead), []string{"ls"}, 5, `redis cannot be reached: .*connection refused`},
		{urlOf(srv) + " " + urlOf(srv) + " " + urlOf(dead), []string{"bench"}, 5, `redis cannot be reached: ` + dead.Addr() + `: .*connection refused`},

		{"", []string{"run", "success", "--", "true"}, 0, `^$`},
		{"", []string{"run", "failure", "--", "sh", "-c", "exit 7"}, 7, `^$`},
		{"", []string{"run", "no dashes", "sh", "-c", "exit 5"}, 5, `^$`},
		{"", []string{"run", "flags after the name", "--kind=fair", "--", "sh", "-c", "exit 3"}, 3, `^$`},
		{"", []string{"run", "help", "--", "true"}, 0, `^$`},
		{"", []string{"run", "a signal", "--", "sh", "-c", "kill -KILL $$"}, 137, `^$`},
		{"", append([]string{"run", "held", "-n", "--"}, ran...), 124, `^holdfast: held is held by hf-[-0-9a-f]+:1, for [0-9.]+s unless renewed; not run\n$`},
		{"", append([]string{"run", "ld", "-n", "--prefix=he", "--"}, ran...), 124, `ld is held by`},
		{"", append([]string{"run", "held", "-w", "3s", "--"}, ran...), 124, `not run\n$`},
		{"", append([]string{"run", "held", "-n", "-E", "75", "--"}, ran...), 75, `not run\n$`},
		{"", append([]string{"run", "held", "-n", "-q", "--"}, ran...), 124, `^$`},
		{"", []string{"run", "rw", "-n", "-s", "--", "true"}, 0, `^$`},
		{"", []string{"run", "rw", "-n", "--kind=read", "--", "true"}, 0, `^$`},
		{"", append([]string{"run", "rw", "-n", "--kind=write", "--"}, ran...), 124, `rw is held by`},
		{"", []string{"run", "x", "--", "no-such-program"}, 127, `"no-such-program": executable file not found in \$PATH\n$`},
		{"", []string{"run", "x", "--", "/etc/passwd"}, 126, `permission denied\n$`},
		{"", []string{"run", "no program", "--", garbage}, 126, `exec format error\n$`},
		{"", []string{"run", "a script without #!", "--", bare, "8"}, 8, `^$`},
		{"", []string{"run", "a word for completions", "--", "test", "x", "=", completionFlag}, 1, `^$`},
		{"", []string{"run", "x"}, 125, `a lock's name and a command are needed`},
		{"", append([]string{"run", "x", "--no-such", "--"}, ran...), 125, `no-such.*\(see holdfast run --help\)\n$`},
		{"", append([]string{"run", "x", "--kind=sema", "--"}, ran...), 125, `--kind is mutex, fair, read or write, not "sema"`},
		{"", append([]string{"run", "x", "--on-loss=shrug", "--"}, ran...), 125, `--on-loss is term, kill or warn`},
		{"", append([]string{"run", "x", "--grace=11s", "--"}, ran...), 125, `a third of the lease, 10s`},
		{"", append([]string{"run", "x", "--lease=1ms", "--"}, ran...), 125, `must be between 10ms`},
		{"", append([]string{"run", "x", "--max-hold=1s", "--"}, ran...), 125, `WithMaxHold`},
		{"", append([]string{"run", "x", "--hold-at-least=1h", "--max-hold=1m", "--"}, ran...), 125, `WithHoldAtLeast`},
		{"", append([]string{"run", "x", "-n", "-w", "1s", "--"}, ran...), 125, `exclude each other`},
		{"", append([]string{"run", "a string", "--"}, ran...), 125, `key is of another kind`},
		{"", append([]string{"run", "", "--"}, ran...), 125, `invalid lock name`},
		{"", append([]string{"run", "x", "-N", "3", "--kind=mutex", "--"}, ran...), 125, `-N and --kind exclude each other`},
		{"", append([]string{"run", "x", "-N", "3", "-s", "--"}, ran...), 125, `-N and --shared exclude each other`},
		{"", append([]string{"run", "x", "-N", "3", "--fencing", "--"}, ran...), 125, `-N and --fencing exclude each other`},
		{"", append([]string{"run", "x", "--kind", "write", "-s", "--"}, ran...), 125, `--shared is --kind read, and excludes --kind write`},
		{"", []string{"run", "x", "--kind", "read", "-s", "--", "true"}, 0, `^$`},
		{"", append([]string{"run", "x", "-N", "0", "--"}, ran...), 125, `must have from 1 to 1048576 permits`},
		{three, append([]string{"run", "x", "-N", "3", "--"}, ran...), 125, `-N needs one Redis`},

		{"", []string{"lead", "won", "--", "true"}, 0, `^$`},
		{"", []string{"lead", "fails", "sh", "-c", "exit 9"}, 9, `^$`},
		{"", []string{"lead", "told", "-v", "--", "true"}, 0, `holdfast: holds told\n`},
		{"", []string{"lead", "x", "--", "no-such-program"}, 127, `not found`},
		{"", []string{"lead", "x"}, 125, `a command are needed: lead NAME -- CMD`},
		{"", append([]string{"lead", "x", "--no-wait", "--"}, ran...), 125, `\(see holdfast lead --help\)`},
		{"", append([]string{"lead", "x", "--value=" + strings.Repeat("x", 4097), "--"}, ran...), 125, `a value has at most 4096 bytes`},
		{"", append([]string{"lead", "kind", "--"}, ran...), 125, `the key holdfast_leader:{kind} holds a string`},
		{"", append([]string{"lead", "x", "--redis=" + urlOf(srv), "--redis=" + urlOf(srv), "--redis=" + urlOf(srv), "--"}, ran...), 125, `an election needs one Redis`},
		{urlOf(dead), append([]string{"lead", "x", "--"}, ran...), 125, `redis cannot be reached: .*connection refused`},
	}
	for url, stderr := range map[string]string{
		urlOf(dead):                    `redis cannot be reached: .*connection refused`,
		"redis://:wrong@" + srv.Addr(): `redis refuses: WRONGPASS`,
		"redis://" + srv.Addr():        `redis refuses: NOAUTH`,
		noRights:                       `NOPERM`,
		"redis://" + replica.Addr():    `READONLY|not acquired`,
		"localhost":                    `URL 1 of --redis is no URL`,
		"http://localhost":             "URL 1 of --redis is no URL of Redis",
		"redis://:pa/ss%zz@localhost":  `URL 1 of --redis .*write special characters`,
		"redis+sentinel://localhost":   `does not name the master`,
		urlOf(srv) + " " + urlOf(srv):  `at least three`,
	} {
		rows = append(rows, row{url, append([]string{"run", "x", "-n", "--timeout=2s", "--"}, ran...), 125, stderr})
	}
	t.Run("rows", func(t *testing.T) {
		for _, tt := range rows {
			t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
				t.Parallel()
				if tt.url == "" {
					tt.url = urlOf(srv)
				}
				i := start(t, tt.url, tt.args...)
				i.prints(t, tt.status, "")
				said := i.stderr.String()
				if !regexp.MustCompile(tt.stderr).MatchString(said) {
					t.Errorf("stderr is %q, want %q", said, tt.stderr)
				}
				for _, secret := range []string{srv.Password(), dead.Password(), "secret", "ss%zz"} {
					if strings.Contains(said, secret) {
						t.Errorf("stderr has a password: %q", said)
					}
				}
			})
		}
	})
	start(t, urlOf(srv), "ls", "-o", "name").prints(t, 0, "held\nrw\n") // the others were given back
}
