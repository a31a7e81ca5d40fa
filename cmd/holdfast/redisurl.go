package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
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

// errURL does not repeat the URL, and no part of it: it can have a password.
var errURL = errors.New("cannot be read as a URL: write special characters of the password as %40 for @, and so on")

// openClient returns a client for a URL. It does not connect.
func openClient(given string, timeout time.Duration) (redis.UniversalClient, error) {
	scheme, rest, ok := strings.Cut(given, "://")
	if !ok {
		return nil, errors.New("is no URL: it begins with redis://, rediss://, unix://, redis+cluster:// or redis+sentinel://")
	}
	transport, deployment, _ := strings.Cut(scheme, "+")
	switch {
	case scheme == "redis" || scheme == "rediss" || scheme == "unix":
		o, err := redis.ParseURL(given)
		if err != nil {
			return nil, withoutURL(err)
		}
		limit(timeout, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, &o.MaxRetries, &o.ContextTimeoutEnabled)
		return redis.NewClient(o), nil
	case (transport == "redis" || transport == "rediss") && deployment == "cluster":
		u, err := severalHosts(transport, rest)
		if err != nil {
			return nil, err
		}
		o, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, withoutURL(err)
		}
		limit(timeout, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, new(int), &o.ContextTimeoutEnabled)
		return redis.NewClusterClient(o), nil
	case (transport == "redis" || transport == "rediss") && deployment == "sentinel":
		return openSentinel(transport, rest, timeout)
	}
	return nil, fmt.Errorf("has the unknown scheme %q", scheme)
}

// openSentinel reads user:password@host,host/master/db?sentinel_password=...: the user is the server's.
func openSentinel(transport, rest string, timeout time.Duration) (redis.UniversalClient, error) {
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
	o.SentinelUsername, o.SentinelPassword = sentinelUser, sentinelPassword
	limit(timeout, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout, &o.PoolTimeout, &o.DialerRetries, &o.MaxRetries, &o.ContextTimeoutEnabled)
	return redis.NewFailoverClient(o), nil
}

// severalHosts reads user:password@host,host/path?query; all hosts but the first become parameters, as go-redis wants them.
func severalHosts(scheme, rest string) (*url.URL, error) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	user := ""
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, authority = authority[:at+1], authority[at+1:]
	}
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

// withoutURL keeps what go-redis says of a URL that it could read.
func withoutURL(err error) error {
	if bad := (*url.Error)(nil); errors.As(err, &bad) {
		return errURL
	}
	return err
}
