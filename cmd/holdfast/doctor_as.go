package main

import (
	"context"
	"slices"
	"strings"
)

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
