package contender

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// redissonReady builds the Java program once, if Maven and a JDK are there.
var redissonReady = sync.OnceValue(func() error {
	for _, tool := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return Missing{tool}
		}
	}
	dir, err := redissonDir()
	if err != nil {
		return err
	}
	if built(dir) {
		return nil
	}
	cmd := exec.Command("mvn", "-q", "-B", "package")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn package: %w: %s", err, out)
	}
	return nil
})

// Missing is a tool that a library needs and this machine does not have.
type Missing struct{ tool string }

func (m Missing) Error() string { return "no " + m.tool + " in PATH" }

// redissonDir has the sources, and what Maven makes of them. This module is only ever run from one of its directories. The program
// does not know where it was compiled: with -trimpath it is the same for each clone.
func redissonDir() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if sources := filepath.Join(dir, "redisson"); exists(filepath.Join(sources, "pom.xml")) {
			return sources, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no Java sources, redisson/pom.xml, in %s or above", here)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// built reports whether the jar is newer than all it is made of.
func built(dir string) bool {
	jars, err := filepath.Glob(filepath.Join(dir, "target", "*.jar"))
	if err != nil || len(jars) == 0 {
		return false
	}
	sources, err := filepath.Glob(filepath.Join(dir, "src/main/java/holdfast/bench", "*.java"))
	if err != nil {
		return false
	}
	jar := modified(jars[0])
	for _, source := range append(sources, filepath.Join(dir, "pom.xml")) {
		if modified(source).After(jar) {
			return false
		}
	}
	return true
}

func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// RedissonCommand is a Java worker. Its stacks are small, since it has a thread per
// caller; the serial collector is the right one for a core.
func RedissonCommand() (*exec.Cmd, error) {
	if err := redissonReady(); err != nil {
		return nil, fmt.Errorf("redisson: %w", err)
	}
	dir, err := redissonDir()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(dir, "target")
	path := filepath.Join(target, "classes") + string(os.PathListSeparator) + filepath.Join(target, "lib", "*")
	return exec.Command("java", "-XX:+UseSerialGC", "-Xss256k", "-Xmx512m", "-cp", path, "holdfast.bench.Worker"), nil
}
