//go:build unix

package main

import (
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// diagnose runs doctor and returns its findings by their codes; of several with one code, the worst.
func diagnose(t *testing.T, url string, args ...string) (status int, found map[string]finding) {
	t.Helper()
	status, all := findings(t, url, args...)
	found = make(map[string]finding)
	for _, f := range all {
		if old, ok := found[f.Code]; !ok || (old.Verdict != failed && f.Verdict != good) {
			found[f.Code] = f
		}
	}
	return status, found
}

// findings runs doctor and returns all that it says.
func findings(t *testing.T, url string, args ...string) (status int, all []finding) {
	t.Helper()
	i := start(t, url, append([]string{"doctor", "-o", "json"}, args...)...)
	status = i.wait(t)
	if err := json.Unmarshal(i.stdout.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s%s", err, &i.stdout, &i.stderr)
	}
	return status, all
}

func do(t *testing.T, srv *redistest.Server, words ...any) {
	t.Helper()
	if err := srv.Admin().Do(t.Context(), words...).Err(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}

// accessRights are those that docs/SETUP.md names, for a user locks with the password secret.
func accessRights(t *testing.T) []any {
	t.Helper()
	text, err := os.ReadFile("../../docs/SETUP.md")
	must(t, err)
	line := regexp.MustCompile(`(?m)^ACL SETUSER locks on .*$`).FindString(string(text))
	var words []any
	for _, w := range strings.Fields(line) {
		words = append(words, w)
	}
	if len(words) == 0 {
		t.Fatal("no rights")
	}
	return words
}

// Servers that are set up badly: the check that is meant finds it, says what it means, and nothing else fails.
func TestDoctor_BadServers(t *testing.T) {
	t.Parallel()
	type want struct {
		verdict verdict
		means   string
	}
	for _, tt := range []struct {
		name   string
		opts   []redistest.ServerOption
		config []any                                                  // names and values for CONFIG SET
		rights []any                                                  // what changes those of a user, as whom the command looks at app:
		url    func(t *testing.T, srv *redistest.Server) (url string) // nil: the server's own
		want   map[string]want                                        // by code; the others neither warn nor fail
	}{
		{name: "nothing is wrong", want: map[string]want{"HF117": {note, `^0 locks are held by Redisson's clients; 0 connections listen for releases as these do$`}}},
		{name: "evicts", config: []any{"maxmemory", "1gb", "maxmemory-policy", "allkeys-lru"},
			want: map[string]want{"HF104": {failed, `^allkeys-lru: when the memory is full, Redis deletes locks of living holders$`}}},
		{name: "would evict", config: []any{"maxmemory-policy", "volatile-ttl"},
			want: map[string]want{"HF104": {warned, `^volatile-ttl: .* as soon as maxmemory is set$`}}},
		{name: "full", config: []any{"maxmemory", "100kb"},
			want: map[string]want{"HF105": {failed, `^full: \d+ [kM]B of 100 kB; `}, "HF115": {failed, `OOM`}}},
		{name: "forgets", config: []any{"appendonly", "no"},
			want: map[string]want{"HF106": {warned, `^no append-only file: a restart forgets`}}},
		{name: "needs replicas", config: []any{"min-replicas-to-write", "1"},
			want: map[string]want{"HF107": {failed, `^min-replicas-to-write is 1, and 0 replicas are fit`}, "HF115": {failed, `NOREPLICAS`}}},
		{name: "closes connections", config: []any{"timeout", "2"},
			want: map[string]want{"HF108": {warned, `idle for 2 s`}}},
		{name: "lacks a command", rights: []any{"-pexpire", "-zscore"},
			want: map[string]want{"HF113": {failed, `: pexpire$|: pexpire, zscore$`}, "HF115": {failed, `HOLDFAST cannot set a TTL`}}},
		{name: "lacks keys", rights: []any{"resetkeys", "~app:*"},
			want: map[string]want{"HF112": {failed, `may not use keys such as redisson_lock_token:\{app:\*\}`}, "HF115": {failed, `.`}}},
		{name: "lacks channels", rights: []any{"resetchannels", "&redisson_*{app:*"},
			want: map[string]want{"HF114": {warned, `holdfast_inbox:\*, so waiters poll`}}},
		{name: "lacks EVAL", rights: []any{"-eval"},
			want: map[string]want{"HF112": {note, `^not checked: EVAL`}, "HF113": {failed, `^the user lacks rights that Holdfast needs: eval$`}, "HF115": {failed, `eval`}}},
		{name: "lacks EXISTS", rights: []any{"-exists"},
			want: map[string]want{"HF113": {failed, `^the user lacks rights that Holdfast needs: exists$`}, "HF115": {failed, `.`}}},
		{name: "lacks ZCOUNT", rights: []any{"-zcount"},
			want: map[string]want{"HF113": {failed, `: zcount$`}, "HF115": {failed, `^a permit of a semaphore could not be taken`}}},
		{name: "a hidden command", opts: []redistest.ServerOption{redistest.WithArgs("--rename-command", "ZSCORE", "hidden")},
			want: map[string]want{"HF113": {failed, `does not know zscore`}, "HF115": {failed, `^a permit .* Unknown Redis command`}}},
		{name: "hides INFO", url: func(t *testing.T, srv *redistest.Server) string {
			proxy := srv.Proxy(t)
			proxy.AnswerError(redistest.Command("info"), math.MaxInt, "ERR unknown command 'INFO'")
			return urlVia(srv, proxy)
		}, want: map[string]want{"HF101": {note, `^PING is answered and INFO is not, so the settings of the server are not checked: ERR unknown command`}, "HF112": {good, `.`}, "HF114": {good, `.`}, "HF115": {good, `.`}}},
		{name: "accepts SUBSCRIBE and forwards nothing", url: func(t *testing.T, srv *redistest.Server) string {
			proxy := srv.Proxy(t)
			proxy.Answer(redistest.Command("publish"), math.MaxInt, ":0\r\n")
			return urlVia(srv, proxy)
		}, want: map[string]want{"HF114": {warned, `came back within 3s, so waiters poll`}}},
		{name: "a replica", opts: []redistest.ServerOption{redistest.WithoutPassword()}, url: func(t *testing.T, srv *redistest.Server) string {
			host, port, _ := strings.Cut(redistest.Start(t, redistest.WithoutPassword()).Addr(), ":")
			do(t, srv, "replicaof", host, port)
			return urlOf(srv)
		}, want: map[string]want{"HF102": {failed, `^a replica: it refuses writes`}}},
		{name: "a lock for good", url: func(t *testing.T, srv *redistest.Server) string {
			do(t, srv, "hset", "old", aliceID, 1)
			return urlOf(srv)
		}, want: map[string]want{"HF116": {warned, `^1 of 1 locks have no TTL`}}},
		{name: "clients of Redisson", url: func(t *testing.T, srv *redistest.Server) string {
			for name, owner := range map[string]string{"a": javaID, "b": aliceID} {
				do(t, srv, "hset", name, owner, 1)
				do(t, srv, "pexpire", name, 60000)
			}
			lock, _ := wire.Channels("a")
			_, rw := wire.Channels("c")
			for _, channel := range []string{lock, rw} { // as its waiters listen
				sub := srv.Admin().Subscribe(t.Context(), channel)
				t.Cleanup(func() { sub.Close() })
				_, err := sub.Receive(t.Context())
				must(t, err)
			}
			return urlOf(srv)
		}, want: map[string]want{"HF117": {note, `^1 locks are held by Redisson's clients; 2 connections listen for releases as these do$`}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, append([]redistest.ServerOption{redistest.WithArgs("--appendonly", "yes", "--appendfsync", "everysec")}, tt.opts...)...)
			url, args := urlOf(srv), []string(nil)
			for setting := range slices.Chunk(tt.config, 2) {
				do(t, srv, "config", "set", setting[0], setting[1])
			}
			if tt.rights != nil {
				do(t, srv, append(accessRights(t), tt.rights...)...)
				url, args = "redis://locks:secret@"+srv.Addr(), []string{"--prefix=app:"}
			}
			if tt.url != nil {
				url = tt.url(t, srv)
			}
			before := srv.Keys()
			status, found := diagnose(t, url, args...)
			wantStatus := 0
			for code, w := range tt.want {
				f := found[code]
				if w.verdict == failed {
					wantStatus = exitNo
				}
				if f.Verdict != w.verdict || !regexp.MustCompile(w.means).MatchString(f.Means) {
					t.Errorf("%s: %q %q, want %q %q", code, f.Verdict, f.Means, w.verdict, w.means)
				}
			}
			for code, f := range found {
				if _, ok := tt.want[code]; !ok && (f.Verdict == failed || f.Verdict == warned) {
					t.Errorf("%s: %q %q", code, f.Verdict, f.Means)
				}
			}
			redistest.Want(t, status, wantStatus, "exit status %d, want %d")
			if tt.name == "lacks keys" { // what it says to type is enough
				var rule []any
				for _, word := range strings.Fields(found["HF112"].Do) {
					rule = append(rule, word)
				}
				do(t, srv, rule...)
				if status, found := diagnose(t, url, args...); status != 0 {
					t.Errorf("after %q: %+v", rule, found)
				}
			}
			if after := srv.Keys(); !slices.Equal(before, after) {
				t.Errorf("keys before: %q, after: %q", before, after)
			}
		})
	}
}

// With --as an administrator checks the rights of another user, and no command is run as that user.
func TestDoctor_As(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithArgs("--appendonly", "yes", "--appendfsync", "everysec"))
	if srv.Major() < 7 {
		_, found := diagnose(t, urlOf(srv), "--as=locks")
		if f := found["HF112"]; f.Verdict != note {
			t.Errorf("before Redis 7: %+v", f)
		}
		return
	}
	for _, tt := range []struct {
		change []any
		want   map[string]string // what the failures and warnings say
	}{
		{nil, nil},
		{[]any{"-pexpire", "-zscore"}, map[string]string{"HF113": "the user locks lacks rights that Holdfast needs: pexpire, zscore"}},
		{[]any{"-cluster|info"}, map[string]string{"HF113": ": cluster"}},
		{[]any{"-exists", "-evalsha"}, map[string]string{"HF113": ": exists, evalsha"}},
		{[]any{"resetkeys", "~app:*"}, map[string]string{"HF112": "may not use keys such as redisson_lock_token:{app:*}"}},
		{[]any{"resetkeys", "~app:*", "~redisson_*{app:*", "~holdfast_rw*{app:*", "~{app:*"}, map[string]string{"HF112": "may not use keys such as holdfast_permit_queue:{app:*}, holdfast_permit_timeout:{app:*}, holdfast_tombstones:{app:*};"}},
		{[]any{"resetkeys", "~app:*", "~redisson_*{app:*", "~holdfast_*{app:*"}, map[string]string{"HF112": "may not use keys such as {app:*}:timeout, {app:*;"}},
		{[]any{"resetchannels", "&redisson_*{app:*"}, map[string]string{"HF114": "holdfast_inbox:*, so waiters poll"}},
		{[]any{"-subscribe"}, map[string]string{"HF114": "so waiters poll"}},
	} {
		do(t, srv, append([]any{"acl", "deluser"}, "locks")...)
		do(t, srv, append(accessRights(t), tt.change...)...)
		_, found := diagnose(t, urlOf(srv), "--as=locks", "--prefix=app:")
		for code, f := range found {
			if want := tt.want[code]; (want != "") != (f.Verdict == failed || f.Verdict == warned) || !strings.Contains(f.Means, want) {
				t.Errorf("%v: %s: %q %q, want %q", tt.change, code, f.Verdict, f.Means, want)
			}
		}
	}
	if status, found := diagnose(t, urlOf(srv), "--as=ghost"); status != exitNo || found["HF112"].Means != "there is no user ghost" {
		t.Errorf("exit status %d: %+v", status, found["HF112"])
	}
}

// What is printed, and that --strict takes warnings for failures. Times differ from run to run.
func TestDoctor_Golden(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithArgs("--appendonly", "no"))
	i := start(t, urlOf(srv), "doctor", "--strict")
	i.exits(t, exitNo)
	text := regexp.MustCompile(`\d+(\.\d+)*(ns|µs|ms|s)?`).ReplaceAllString(i.stdout.String(), "N")
	for _, line := range []string{
		"ok    HFN server              redis N, standalone\n",
		"ok    HFN role                a master\n",
		"warn  HFN persistence         no append-only file: a restart forgets the locks since the last snapshot, and other callers get them while their holders work\n" +
			"      type:  CONFIG SET appendonly yes\n      see:   docs/SETUP.md#settings-of-the-server\n",
		"ok    HFN access to commands  all commands\n",
	} {
		if line = strings.Replace(line, "redis N", serverName(text), 1); !strings.Contains(text, line) {
			t.Errorf("stdout has no\n%s", line)
		}
	}
	i = start(t, urlOf(srv), "doctor", "-q")
	if status := i.wait(t); status != 0 || !strings.HasPrefix(i.stdout.String(), "warn  HF106 ") || strings.Contains(i.stdout.String(), "\nok ") || strings.Contains(i.stdout.String(), "info") {
		t.Errorf("exit status %d", status)
	}
	i = start(t, urlOf(srv), "doctor", "-o", "jsonl")
	i.exits(t, 0)
	want := `{"code":"HF106","check":"persistence","verdict":"warn","means":"no append-only file: a restart forgets the locks since the last snapshot, and other callers get them while their holders work","do":"CONFIG SET appendonly yes","see":"docs/SETUP.md#settings-of-the-server"}` + "\n"
	if !strings.Contains(i.stdout.String(), want) {
		t.Errorf("stdout has no %s", want)
	}
}

// serverName keeps the name of the server under test.
func serverName(text string) string {
	if strings.Contains(text, "valkey N") {
		return "valkey N"
	}
	return "redis N"
}

// The probe tries what docs/SETUP.md grants, each code is in docs/COMMAND.md, and each reference is a heading.
func TestDoctor_IsDocumented(t *testing.T) {
	t.Parallel()
	var granted, tried []string
	for _, w := range accessRights(t) {
		if command, ok := strings.CutPrefix(w.(string), "+"); ok {
			command, _, _ = strings.Cut(command, "|")
			granted = append(granted, command)
		}
	}
	for _, words := range needed {
		tried = append(tried, words[0])
	}
	tried = append(tried, "ping", "eval", "evalsha", "subscribe", "unsubscribe")
	slices.Sort(granted)
	slices.Sort(tried)
	if !slices.Equal(granted, tried) {
		t.Errorf("granted:\n%q, tried:\n%q", granted, tried)
	}
	page, err := os.ReadFile("../../docs/COMMAND.md")
	must(t, err)
	anchors := make(map[string]bool)
	for _, name := range []string{"OPERATIONS.md", "RUNBOOK.md", "SETUP.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		must(t, err)
		for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
			anchors[name+"#"+strings.ReplaceAll(regexp.MustCompile(`[^a-z -]`).ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
		}
	}
	for _, c := range []check{checkServer, checkRole, checkCluster, checkEviction, checkMemory, checkPersistence, checkReplicas, checkClients,
		checkPauses, checkRoundTrip, checkClock, checkKeys, checkCommands, checkMessages, checkLocking, checkLocks, checkRedisson} {
		if !strings.Contains(string(page), "| "+c.code+" | "+c.name+" |") {
			t.Errorf("docs/COMMAND.md has no %s, %s", c.code, c.name)
		}
		if !anchors[c.see] {
			t.Errorf("%s: there is no docs/%s", c.code, c.see)
		}
	}
}
