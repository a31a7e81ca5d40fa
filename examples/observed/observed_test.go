package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("OBSERVED_TEST_RUN") != "" { // this binary is the program, and so are the services that it starts
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %s", url, err, answer.Status)
	}
	return string(body)
}

// Both services show their locks on a page, and the metrics that the dashboard of docs/grafana asks for.
func TestObserved(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "--any-port")
	cmd.Env = append(os.Environ(), "OBSERVED_TEST_RUN=1")
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ends with %v", err)
		}
	}()
	lines := bufio.NewScanner(stdout)
	for range services {
		if !lines.Scan() {
			t.Fatalf("a service has not started: %v", lines.Err())
		}
		m := regexp.MustCompile(`^(\w+): page (\S+) metrics (\S+)$`).FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatalf("%q", lines.Text())
		}
		if page := get(t, m[2]); !strings.Contains(page, "Locks of") {
			t.Errorf("%s is not the page", m[2])
		}
		wanted := seriesOfTheDashboard(t)
		for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			missing := missingFrom(get(t, m[3]), wanted)
			if len(missing) == 0 {
				break
			}
			if time.Since(begin) > time.Minute {
				t.Errorf("%s has no %q", m[1], missing)
				break
			}
		}
	}
}

// rare are series that begin with the first fault.
var rare = regexp.MustCompile(`^holdfast_(lost_total|pubsub_reconnects_total|troubles_total|polls_total)$`)

// seriesOfTheDashboard are the metrics that its queries name.
func seriesOfTheDashboard(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/grafana/holdfast.json")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for _, m := range regexp.MustCompile(`holdfast_[a-z_]+[{)]`).FindAllString(string(text), -1) {
		if name := strings.TrimRight(m, "{)"); !rare.MatchString(name) && !strings.HasSuffix(name, "_type") && !strings.HasSuffix(name, "_reason") && !strings.HasSuffix(name, "_outcome") && !strings.HasSuffix(name, "_mode") {
			all[name] = true
		}
	}
	if len(all) < 6 {
		t.Fatalf("only %d series", len(all))
	}
	return all
}

func missingFrom(metrics string, wanted map[string]bool) (missing []string) {
	for name := range wanted {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^%s(\{| )`, name)).MatchString(metrics) {
			missing = append(missing, name)
		}
	}
	return missing
}
