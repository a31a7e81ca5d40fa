//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A watched list goes on through an outage, and ends with a signal.
func TestList_Watch(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	hold(t, srv, "first")
	dir := t.TempDir()
	files := make(map[string]*os.File)
	for _, name := range []string{"stdout", "stderr"} {
		f, err := os.Create(filepath.Join(dir, name))
		must(t, err)
		defer f.Close()
		files[name] = f
	}
	shows := func(file, text string) {
		t.Helper()
		redistest.Eventually(t, patience, file+" has "+text, func() bool {
			got, err := os.ReadFile(filepath.Join(dir, file))
			return err == nil && strings.Contains(string(got), text)
		})
	}
	i := prepare(t, urlOf(srv), "ls", "--watch=100ms", "--timeout=1s", "-o", "name")
	i.Cmd.Stdout, i.Cmd.Stderr = files["stdout"], files["stderr"]
	must(t, i.Start())
	shows("stdout", "first\nfirst\n")
	hold(t, srv, "second")
	shows("stdout", "first\nsecond\n")
	srv.Kill()
	shows("stderr", "connection refused")
	srv.Restart()
	hold(t, srv, "third")
	shows("stdout", "third\n")
	must(t, i.Process.Signal(syscall.SIGINT))
	i.exits(t, 130)
}

func TestComplete(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, name := range []string{"nightly", "-rf", "$(touch hurt)", "`touch hurt`", "a b", "stock:1"} {
		hold(t, srv, name)
	}
	i := start(t, urlOf(srv), "inspect", completionFlag)
	if i.wait(t); i.stdout.String() != "nightly\n" {
		t.Errorf("inspect: %q", &i.stdout)
	}
	for _, row := range []struct{ words, want string }{
		{"run x --kind", "mutex\nfair\nread\nwrite\n"},
		{"run x --kind fa", "mutex\nfair\nread\nwrite\n"},
		{"ls -o", "table\nwide\njson\njsonl\nname\n"},
		{"doctor --output j", "table\njson\njsonl\n"},
	} {
		i = start(t, urlOf(srv), append(strings.Fields(row.words), completionFlag, askedByShell)...)
		if i.wait(t); i.stdout.String() != row.want {
			t.Errorf("%s: %q", row.words, &i.stdout)
		}
	}
	i = start(t, urlOf(srv), "inspect", "--", "nig", completionFlag)
	if status := i.wait(t); status != 0 || i.stdout.Len() > 0 {
		t.Errorf("behind --: exit status %d, %q", status, &i.stdout)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	for _, command := range []string{"run", "lead"} {
		start(t, urlOf(srv), command, "free", "--", "touch", ran, completionFlag, askedByShell).wait(t)
		if _, err := os.Stat(ran); err == nil {
			t.Errorf("the command of %s was run", command)
		}
	}

	exe, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(exe, filepath.Join(dir, "holdfast")))
	// What the bash-completion package defines is replaced: it may not be installed.
	script := `_get_comp_words_by_ref() { :; }
source <(holdfast completion bash) || exit
complete_it() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); __holdfast_bash_autocomplete; echo "[${COMPREPLY[*]}]"; }
complete_it holdfast ins
complete_it holdfast inspect ni
complete_it holdfast ls --wai
complete_it holdfast run free -- touch "$1"`
	sh := prepare(t, urlOf(srv))
	sh.Path, sh.Args, sh.Dir = "/bin/bash", []string{"bash", "--norc", "-c", script, "bash", ran}, dir
	sh.Env = append(sh.Env, "PATH="+dir+":"+os.Getenv("PATH"))
	must(t, sh.Start())
	if sh.wait(t); sh.stdout.String() != "[inspect]\n[nightly]\n[--waiting]\n[]\n" {
		t.Errorf("bash: %q", &sh.stdout)
	}
	for _, file := range []string{ran, filepath.Join(dir, "hurt")} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("completion has made %s", file)
		}
	}
}
