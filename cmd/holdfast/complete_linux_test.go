package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// needsShell skips the test if the shell is not installed. With HOLDFAST_SHELLS=require, as in CI, the test fails instead.
func needsShell(t *testing.T, shell string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err == nil {
		return
	}
	if os.Getenv("HOLDFAST_SHELLS") == "require" {
		t.Fatalf("%s is not installed, and HOLDFAST_SHELLS=require: tools/install-shells.sh installs it", shell)
	}
	t.Skipf("no %s here", shell)
}

// Zsh and fish complete commands, flags and names as their users type them.
func TestComplete_OtherShells(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	hold(t, srv, "nightly")
	exe, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(exe, filepath.Join(dir, "holdfast")))
	env := []string{"HOLDFAST_REDIS=" + urlOf(srv), "PATH=" + dir + ":" + os.Getenv("PATH"), "HISTFILE=", "TERM=xterm"}

	t.Run("zsh", func(t *testing.T) {
		needsShell(t, "zsh")
		c := openConsole(t, env, "zsh", "-f", "-i")
		c.press(t, "PS1='rea''dy> '; autoload -Uz compinit && compinit -u -D && source <(holdfast completion zsh) && echo lo''aded\n")
		c.await(t, "loaded", 1)
		c.press(t, "holdfast insp\tni\t --out\t name; echo sta''tus-$?\n")
		c.await(t, "status-0", 1)
	})
	t.Run("fish", func(t *testing.T) {
		needsShell(t, "fish")
		fish := newInvocation(t)
		fish.Path, _ = exec.LookPath("fish")
		ran := filepath.Join(dir, "ran")
		fish.Args = []string{"fish", "--no-config", "-c", `holdfast completion fish | source; for line in "holdfast insp" "holdfast inspect ni" "holdfast ls --wai" "holdfast run free -- touch $argv[1]"; complete -C $line | string replace -r '\t.*' ''; end`, ran}
		fish.Env = append(fish.Env, env...)
		must(t, fish.Start())
		if fish.wait(t); fish.stdout.String() != "inspect\nnightly\n--waiting\n" {
			t.Errorf("fish: %q", &fish.stdout)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Error("the command was run")
		}
	})
}
