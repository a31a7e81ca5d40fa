package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"
)

func doctorCommand() *cli.Command {
	return siteCommand(&cli.Command{
		Name:  "doctor",
		Usage: "check whether a Redis is set up for locks",
		Description: "Nothing on the server is changed but locks and keys that have holdfast-doctor: in their names, after --prefix. They are\n" +
			"deleted, or expire after 10 seconds.\n\n" +
			"Exit status: 0 nothing is wrong, 1 failed, 2 usage, 3 a check failed, 5 Redis cannot be reached.",
		Flags: []cli.Flag{
			forFlag(), leaseFlag(),
			&cli.StringFlag{Name: "as", Usage: "check the rights of the user `NAME` instead, as an administrator; needs Redis 7"},
			&cli.BoolFlag{Name: "strict", Usage: "take a warning for a failure"},
			outputFlag("a table, json, or jsonl", reportFormats),
		},
	}, errand{check: noNames, do: runDoctor, coded: failure})
}

func noNames(c *cli.Command) error {
	if c.Args().Present() {
		return fmt.Errorf("unexpected argument %q", c.Args().First())
	}
	return nil
}

// verdict is what a check has found.
type verdict string

const (
	good   verdict = "ok"
	note   verdict = "info" // it is neither good nor bad, or could not be looked at
	warned verdict = "warn"
	failed verdict = "FAIL"
)

// finding is the result of one check.
type finding struct {
	Code    string  `json:"code"` // one for each check; docs/COMMAND.md lists them
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Node    string  `json:"node,omitempty"` // of a cluster, or of several servers
	Means   string  `json:"means"`
	Do      string  `json:"do,omitempty"`  // what to type
	See     string  `json:"see,omitempty"` // the page about it, and its part
}

// check is a code, its name, and the part of a page in docs about it.
type check struct{ code, name, see string }

// The checks, in their order.
var (
	checkServer      = check{"HF101", "server", "SETUP.md#servers"}
	checkRole        = check{"HF102", "role", "RUNBOOK.md#the-server-is-a-replica"}
	checkCluster     = check{"HF103", "cluster", "RUNBOOK.md#redis-does-not-answer"}
	checkEviction    = check{"HF104", "eviction", "SETUP.md#settings-of-the-server"}
	checkMemory      = check{"HF105", "memory", "RUNBOOK.md#the-server-is-full"}
	checkPersistence = check{"HF106", "persistence", "SETUP.md#settings-of-the-server"}
	checkReplicas    = check{"HF107", "replicas", "SETUP.md#settings-of-the-server"}
	checkClients     = check{"HF108", "clients", "RUNBOOK.md#the-load-of-the-locks"}
	checkPauses      = check{"HF109", "pauses", "RUNBOOK.md#locks-are-lost"}
	checkRoundTrip   = check{"HF110", "round trip", "SETUP.md#sizing-leases"}
	checkClock       = check{"HF111", "clock", "RUNBOOK.md#two-holders-at-once"}
	checkKeys        = check{"HF112", "access to keys", "SETUP.md#access-rights"}
	checkCommands    = check{"HF113", "access to commands", "SETUP.md#access-rights"}
	checkMessages    = check{"HF114", "messages", "RUNBOOK.md#waiters-do-not-wake-up"}
	checkLocking     = check{"HF115", "locking", "RUNBOOK.md#redis-does-not-answer"}
	checkLocks       = check{"HF116", "locks", "RUNBOOK.md#a-lock-has-no-ttl"}
	checkRedisson    = check{"HF117", "redisson", "OPERATIONS.md#looking-at-a-lock"}
)

// doctor collects findings. It belongs to one goroutine.
type doctor struct {
	at       *site
	all      *survey
	lease    time.Duration
	prefix   string
	probe    string // a lock's name, with the prefix
	user     string // of Redis, whose rights are checked
	as       string // the same, if it is another than that of the URL; empty: it is not
	node     string // that is being looked at; empty: there is but one
	findings []finding
}

func (d *doctor) add(c check, v verdict, do, format string, args ...any) {
	f := finding{Code: c.code, Check: c.name, Verdict: v, Node: d.node, Means: fmt.Sprintf(format, args...), Do: do}
	if v != good {
		f.See = "docs/" + c.see
	}
	d.findings = append(d.findings, f)
}

func runDoctor(ctx context.Context, c *cli.Command, sites []*site) error {
	all := new(doctor)
	for _, at := range sites {
		findings, err := diagnosis(ctx, c, at)
		if at.away(err) { // a Redlock goes on without it
			lone := &doctor{node: at.name}
			lone.add(checkServer, failed, "", "%s", noAnswer(err))
			findings, err = lone.findings, nil
		}
		if err != nil {
			return err
		}
		all.findings = append(all.findings, findings...)
	}
	said := []finding{} // json has no null
	for _, f := range all.findings {
		if !c.Bool("quiet") || f.Verdict == warned || f.Verdict == failed {
			said = append(said, f)
		}
	}
	if err := printFindings(c.Root().Writer, styleOf(c, c.Root().Writer), c.String("output"), said); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if worst := all.worst(); worst == failed || (worst == warned && c.Bool("strict")) {
		return silent(exitNo)
	}
	return nil
}

// diagnosis is what all checks of one Redis have found.
func diagnosis(ctx context.Context, c *cli.Command, at *site) ([]finding, error) {
	if at.down != nil {
		return nil, &unavailable{at.down}
	}
	d := &doctor{at: at, all: newSurvey(c, "*").shown(c), as: c.String("as"), lease: c.Duration("lease"), prefix: c.String("prefix")}
	d.probe = d.prefix + "holdfast-doctor:" + randomName()
	nodes, err := masters(ctx, at.client)
	if err != nil {
		return nil, &unavailable{err}
	}
	d.user = printable(cmp.Or(d.as, nodes[0].Options().Username, "default"))
	writable := true
	for _, node := range nodes {
		if d.node = at.name; len(nodes) > 1 {
			d.node = node.Options().Addr
		}
		writable = d.lookAt(ctx, node, c.Duration("timeout")) && writable
	}
	d.node = at.name
	d.measure(ctx)
	if writable && d.as == "" {
		d.checkAccess(ctx)
		d.checkMessages(ctx, nodes)
	} else if d.as != "" {
		d.checkAccessAs(ctx)
	}
	if writable {
		d.checkLocking(ctx)
	}
	d.checkLocks(ctx)
	return d.findings, ctx.Err()
}

func (d *doctor) worst() verdict {
	worst := good
	for _, f := range d.findings {
		if f.Verdict == failed || (f.Verdict == warned && worst == good) {
			worst = f.Verdict
		}
	}
	return worst
}

// masters returns the servers to look at. Whether they answer, it does not say.
func masters(ctx context.Context, client redis.UniversalClient) (nodes []*redis.Client, err error) {
	switch client := client.(type) {
	case *redis.Client:
		return []*redis.Client{client}, nil
	case *redis.ClusterClient:
		var mu sync.Mutex
		err = client.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, c)
			return nil
		})
		if err == nil && len(nodes) == 0 {
			err = errors.New("the cluster names no master")
		}
		return nodes, err
	}
	return nil, errors.New("an unknown kind of client") // openClient makes no other
}

// printFindings prints what there is to do below each finding.
func printFindings(w io.Writer, s style, format string, findings []finding) error {
	if format != formatTable {
		return printJSON(w, format, findings)
	}
	var text bytes.Buffer
	for _, f := range findings {
		node := ""
		if f.Node != "" {
			node = printable(f.Node) + ": "
		}
		fmt.Fprintf(&text, "%s  %s %-18s  %s%s\n", s.paint(f.Verdict.colour(), fmt.Sprintf("%-4s", f.Verdict)), f.Code, f.Check, node, f.Means)
		if f.Do != "" {
			fmt.Fprintf(&text, "      type:  %s\n", f.Do)
		}
		if f.See != "" && f.Verdict != note {
			fmt.Fprintf(&text, "      see:   %s\n", f.See)
		}
	}
	_, err := text.WriteTo(w)
	return err
}

// checkAccessAs finds out what another user may do, without doing it: ACL DRYRUN, of Redis 7 and later.
func (d *doctor) checkAccessAs(ctx context.Context) {
	var keys, commands []string
	for key, pattern := range d.lockKeys() {
		refused, err := d.dryRun(ctx, "exists", key)
		switch {
		case err != nil && strings.Contains(err.Error(), "not found"):
			d.add(checkKeys, failed, "ACL LIST", "there is no user %s", d.user)
			return
		case err != nil:
			d.add(checkKeys, note, "", "not checked: ACL DRYRUN says: %s", plain(err))
			return
		case refused && !d.refusesCommand(ctx, "exists"):
			keys = append(keys, pattern)
		}
	}
	if len(keys) > 0 {
		d.add(checkKeys, failed, d.grant(keys), "the user %s may not use keys such as %s; if your locks have a prefix, give it with --prefix", d.user, printable(strings.Join(slices.Compact(keys), ", ")))
		d.add(checkCommands, note, "", "not checked: without the keys, the commands cannot be tried")
	} else {
		d.add(checkKeys, good, "", "the user %s may use all keys of a lock", d.user)
		for _, words := range append(slices.Clone(needed), []string{"ping"}, []string{"eval", "return 1", "1", "K"}, []string{"evalsha", strings.Repeat("0", 40), "1", "K"}) {
			if words[0] == "publish" {
				continue // its channel is checked with the messages
			}
			refused, err := d.dryRun(ctx, words[0], d.argumentsOf(words)...)
			if err != nil && !unknown(err) {
				d.add(checkCommands, failed, "", "the probe failed: %s", plain(err))
				return
			}
			if refused || err != nil {
				commands = append(commands, words[0])
			}
		}
		if len(commands) > 0 {
			d.add(checkCommands, failed, "ACL SETUSER "+d.user+" +"+strings.Join(commands, " +"), "the user %s lacks rights that Holdfast needs: %s", d.user, strings.Join(commands, ", "))
		} else {
			d.add(checkCommands, good, "", "the user %s may use all commands", d.user)
		}
	}
	d.checkMessagesAs(ctx)
}

// dryRun reports whether the user is refused the command.
func (d *doctor) dryRun(ctx context.Context, command string, args ...string) (refused bool, err error) {
	call := []any{"acl", "dryrun", d.as, command}
	for _, a := range args {
		call = append(call, a)
	}
	said, err := d.at.client.Do(ctx, call...).Text()
	return said != "OK", err
}

// refusesCommand reports whether the user is refused the command on any key.
func (d *doctor) refusesCommand(ctx context.Context, command string) bool {
	said, err := d.at.client.Do(ctx, "acl", "dryrun", d.as, command, d.probe).Text()
	return err == nil && strings.Contains(said, "permissions to run")
}

// argumentsOf replaces what stands for a key and a channel.
func (d *doctor) argumentsOf(words []string) []string {
	args := slices.Clone(words[1:])
	for i, a := range args {
		switch a {
		case "K":
			args[i] = d.probe
		case "C":
			args[i] = "holdfast_inbox:doctor"
		}
	}
	return args
}
