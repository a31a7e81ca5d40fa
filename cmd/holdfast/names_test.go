package main

import (
	"bytes"
	"strings"
	"testing"
)

// said runs the command in this process.
func said(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(append([]string{"holdfast"}, args...), strings.NewReader(""), &out, &err)
	return status, out.String(), err.String()
}

// What people type who do not know the command yet.
func TestNames_AreUnderstood(t *testing.T) {
	for _, tt := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"help"}, 0, "COMMANDS:", ""},
		{[]string{"help", "run"}, 0, "run a command while it holds a lock", ""},
		{[]string{"help", "runn"}, exitUsage, "", "did you mean run?"},
		{[]string{"version"}, 0, version(), ""},
		{[]string{"lst"}, exitUsage, "", `there is no command "lst"; did you mean ls?`},
		{[]string{"frobnicate"}, exitUsage, "", `there is no command "frobnicate" (see holdfast --help)`},
		{[]string{"ls", "--wating"}, exitUsage, "", "did you mean --waiting?"},
		{[]string{"ls", "--frobnicate"}, exitUsage, "", "flag provided but not defined: -frobnicate (see holdfast ls --help)"},
		{[]string{"redis://:S3CRET@h"}, exitUsage, "", "there is no such command"},
		{[]string{"ls", "--timeout", "redis://:S3CRET@h"}, exitUsage, "", "a URL stands where it does not belong"},
		{[]string{"demo", "redis://:S3CRET@h"}, exitUsage, "", "unexpected argument"},
		{[]string{"demo", "--redis=redis://:12/S3CRET@h"}, exitUsage, "", "cannot be read as a URL"},
		{[]string{"doctor", "--redis", "redis://:12/S3CRET@h"}, exitUsage, "", "cannot be read as a URL"},
		{[]string{"bench", "--redis", "redis://:12?S3CRET@h"}, exitUsage, "", "cannot be read as a URL"},
		{[]string{"--redis", "redis://h/x", "-q", "ls"}, exitUsage, "", "invalid database number"},
		{[]string{"--redis", "U", "--prefix=p", "-q", "run", "--kind", "x"}, runFailed, "", "a lock's name and a command are needed"},
		{[]string{"--redis", "ls"}, exitUsage, "", "flag provided but not defined: -redis"},
		{[]string{"-q", "--version"}, exitUsage, "", "flag provided but not defined: -q"},
		{[]string{"wait", "--help"}, 0, "(default: no limit)", ""},
		{[]string{"demo", "--help"}, 0, "--processes", ""},
		{[]string{"--version"}, 0, "holdfast version ", ""},
		{[]string{"--help"}, 0, "  demo ", ""},
		{nil, 0, "  demo ", ""},
	} {
		status, stdout, stderr := said(tt.args...)
		if strings.Contains(stdout, buyersName) {
			t.Errorf("%q shows the hidden command", tt.args)
		}
		if status != tt.status || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) || strings.Contains(stdout+stderr, "S3CRET") {
			t.Errorf("%q: %d, %q, %q, want %d, %q, %q", tt.args, status, stdout, stderr, tt.status, tt.stdout, tt.stderr)
		}
	}
}
