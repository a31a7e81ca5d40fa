package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"
)

// defaultRedis is asked if nothing names another server.
const defaultRedis = "redis://localhost:6379"

// redisURLs returns what --redis names, or the environment: HOLDFAST_REDIS, then REDIS_URL, with spaces between several.
func redisURLs(c *cli.Command) []string {
	if given := c.StringSlice("redis"); len(given) > 0 {
		return given
	}
	for _, name := range []string{"HOLDFAST_REDIS", "REDIS_URL"} {
		if given := strings.Fields(os.Getenv(name)); len(given) > 0 {
			return given
		}
	}
	return []string{defaultRedis}
}

// errURL does not repeat the URL, and no part of it. What cannot be read, or is out of place, can be a part of the password.
var errURL = errors.New("cannot be read as a URL: write special characters of the password as %40 for @, %2F for /, and so on")

// harmless matches what go-redis says of a URL without the text of the URL.
var harmless = regexp.MustCompile(`^redis: (invalid (database number|URL path|[a-z_]+ (number|duration|boolean))|unexpected option|empty unix socket path)`)

// withoutURL keeps what is known to be harmless.
func withoutURL(err error) error {
	if text := harmless.FindStringSubmatch(err.Error()); text != nil {
		return fmt.Errorf("has an %s, or its password is not escaped: write %%40 for @, %%2F for /, and so on", text[1])
	}
	return errURL
}

// misplaced reports whether the @ behind the password stands where Go does not look for it: a /, ? or # in the password has
// ended the host, so that a part of the password would pass for the host.
func misplaced(scheme, rest string) bool {
	_, _, tail := cutURL(rest)
	return strings.Contains(tail, "@") && !(scheme == "unix" && strings.HasPrefix(rest, "/")) // it may be in the name of a socket
}

// cutURL reads user:password@host,host/path?query.
func cutURL(rest string) (user, hosts, tail string) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	hosts, tail = rest[:end], rest[end:]
	if at := strings.LastIndex(hosts, "@"); at >= 0 {
		user, hosts = hosts[:at+1], hosts[at+1:]
	}
	return user, hosts, tail
}

// firstAddr returns the scheme of a URL that openClient has taken, and its first host; "": it names a socket.
func firstAddr(given string) (scheme, addr string) {
	scheme, rest, _ := strings.Cut(given, "://")
	if scheme == "unix" {
		return scheme, ""
	}
	_, hosts, _ := cutURL(rest)
	addr, _, _ = strings.Cut(hosts, ",")
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = strings.Trim(addr, "[]"), ""
	}
	return scheme, net.JoinHostPort(cmp.Or(host, "localhost"), cmp.Or(port, "6379"))
}

// openClient returns a client for a URL. It does not connect.
func openClient(given string, timeout time.Duration, e encryption) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(given, "://")
	transport, deployment, _ := strings.Cut(scheme, "+")
	known := (transport == "redis" || transport == "rediss") && (deployment == "" || deployment == "cluster" || deployment == "sentinel")
	switch {
	case !ok || scheme != "unix" && !known || strings.HasSuffix(scheme, "+"):
		return nil, errors.New("is no URL of Redis: it begins with redis://, rediss://, unix://, redis+cluster:// or redis+sentinel://")
	case misplaced(scheme, rest):
		return nil, errURL
	case deployment == "sentinel":
		return openSentinel(transport, rest, timeout, e)
	case deployment == "cluster":
		u, err := severalHosts(transport, rest)
		if err != nil {
			return nil, err
		}
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, withoutURL(err)
		}
		if err := e.apply(o.TLSConfig); err != nil {
			return nil, err
		}
		limit(timeout, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, new(int), &o.ContextTimeoutEnabled)
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(given)
	if err != nil {
		return nil, withoutURL(err)
	}
	if err := e.apply(o.TLSConfig); err != nil {
		return nil, err
	}
	limit(timeout, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, &o.MaxRetries, &o.ContextTimeoutEnabled)
	return redis.NewClient(o), nil
}

// openSentinel reads user:password@host,host/master/db?sentinel_password=...: the user is the server's.
func openSentinel(transport, rest string, timeout time.Duration, e encryption) (redis.UniversalClient, error) {
	u, err := severalHosts(transport, rest)
	if err != nil {
		return nil, err
	}
	master, db, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if master == "" {
		return nil, errors.New("does not name the master: redis+sentinel://host,host/master")
	}
	q, user := u.Query(), u.User
	sentinelUser, sentinelPassword := q.Get("sentinel_username"), q.Get("sentinel_password")
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	q.Set("master_name", master)
	u.Path, u.User, u.RawQuery = "/"+db, nil, q.Encode()
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, withoutURL(err)
	}
	if user != nil {
		o.Username = user.Username()
		o.Password, _ = user.Password()
	}
	if err := e.apply(o.TLSConfig); err != nil {
		return nil, err
	}
	o.SentinelUsername, o.SentinelPassword = sentinelUser, sentinelPassword
	limit(timeout, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, &o.MaxRetries, &o.ContextTimeoutEnabled)
	return redis.NewFailoverClient(o), nil
}

// severalHosts reads user:password@host,host/path?query; all hosts but the first become parameters, as go-redis wants them.
func severalHosts(scheme, rest string) (*url.URL, error) {
	user, authority, tail := cutURL(rest)
	hosts := strings.Split(authority, ",")
	u, err := url.Parse(scheme + "://" + user + hosts[0] + tail)
	if err != nil {
		return nil, errURL
	}
	q := u.Query()
	for _, h := range hosts[1:] {
		if _, port, ok := strings.Cut(h, ":"); !ok || port == "" {
			h += ":" + defaultPort(hosts[0])
		}
		q.Add("addr", h)
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// defaultPort is that of the first host, for those that name none.
func defaultPort(first string) string {
	if _, port, ok := strings.Cut(first, ":"); ok && port != "" {
		return port
	}
	return "6379"
}

// limit makes --timeout what a client waits for Redis, where its URL has no times of its own. go-redis would wait for 5 s,
// five times over, and take no notice of a context's deadline.
func limit(timeout time.Duration, dial, read, write, pool *time.Duration, dials, retries *int, deadlines *bool) {
	for _, d := range []*time.Duration{dial, read, write, pool} {
		*d = cmp.Or(*d, timeout)
	}
	*dials, *retries, *deadlines = cmp.Or(*dials, 1), cmp.Or(*retries, 1), true
}
