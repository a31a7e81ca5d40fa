package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Zsh and fish complete commands, flags and names as their users type them. A shell that is missing is skipped.
func TestComplete_OtherShells(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	hold(t, srv, "nightly")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(dir, "holdfast")); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOLDFAST_REDIS=" + urlOf(srv), "PATH=" + dir + ":" + os.Getenv("PATH"), "HISTFILE=", "TERM=xterm"}

	t.Run("zsh", func(t *testing.T) {
		if _, err := exec.LookPath("zsh"); err != nil {
			t.Skip("no zsh here")
		}
		c := openConsole(t, env, "zsh", "-f", "-i")
		c.press(t, "PS1='rea''dy> '; autoload -Uz compinit && compinit -u -D && source <(holdfast completion zsh) && echo lo''aded\n")
		c.await(t, "loaded", 1)
		c.press(t, "holdfast insp\tni\t --out\t name; echo sta''tus-$?\n")
		c.await(t, "status-0", 1)
	})
	t.Run("fish", func(t *testing.T) {
		if _, err := exec.LookPath("fish"); err != nil {
			t.Skip("no fish here")
		}
		fish := newInvocation(t)
		fish.Path, _ = exec.LookPath("fish")
		ran := filepath.Join(dir, "ran")
		fish.Args = []string{"fish", "--no-config", "-c", `holdfast completion fish | source; for line in "holdfast insp" "holdfast inspect ni" "holdfast ls --wai" "holdfast run free -- touch $argv[1]"; complete -C $line | string replace -r '\t.*' ''; end`, ran}
		fish.Env = append(fish.Env, env...)
		if err := fish.Start(); err != nil {
			t.Fatal(err)
		}
		if fish.wait(t); fish.stdout.String() != "inspect\nnightly\n--waiting\n" {
			t.Errorf("fish: %q", &fish.stdout)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Error("the command was run")
		}
	})
}
