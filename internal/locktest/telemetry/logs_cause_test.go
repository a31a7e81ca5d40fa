package telemetry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// listens returns the address of a server that serves each of its connections with serve, and then closes it.
func listens(t *testing.T, serve func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	redistest.Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return l.Addr().String()
}

// says serves connections with a line, before or after it has read something.
func says(line string, first bool) func(net.Conn) {
	return func(c net.Conn) {
		if !first {
			_, _ = c.Read(make([]byte, 1))
		}
		_, _ = io.WriteString(c, line)
		_, _ = io.Copy(io.Discard, c)
	}
}

// encrypts serves connections with TLS, by a certificate that it has signed itself.
func encrypts(t *testing.T) func(net.Conn) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	redistest.Must(t, err)
	self := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"redis"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	redistest.Must(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return func(c net.Conn) { _, _ = io.Copy(io.Discard, tls.Server(c, config)) }
}

// What keeps a manager from Redis altogether is named: in the error of each call, and in the one line of the outage. A Redis that
// refuses the client is there, so that is no outage.
func TestLogs_NeverReached(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	mute, nobody := listens(t, says("", true)), nobodyAt(t)
	ssh, http := listens(t, says("SSH-2.0-OpenSSH_9.6\r\n", true)), listens(t, says("HTTP/1.1 400 Bad Request\r\n\r\n", false))
	hangsUp, private := listens(t, func(net.Conn) {}), listens(t, encrypts(t))
	plain, secret := srv.Addr(), &tls.Config{InsecureSkipVerify: true}
	const (
		isTLS, isPlain           = "(does that port speak TLS?)", "(is that Redis, without TLS"
		reachedTLS, reachedPlain = "(can Redis be reached there, and does that port speak TLS?)", "(can Redis be reached there, without TLS?)"
	)
	const (
		dialling = 3 * time.Second // longer than the time after which a connection is not waited for any more
		many     = 100             // after so many failures go-redis dials by itself, and does not stop when it is closed
	)
	at := func(addr string, change func(*redis.Options)) redis.UniversalClient {
		return srv.ClientWith(t, func(o *redis.Options) {
			o.Addr, o.DialTimeout, o.DialerRetries, o.PoolSize, o.PipelinePoolSize = addr, dialling, 1, many, many
			if change != nil {
				change(o)
			}
		})
	}
	encrypted := func(o *redis.Options) { o.TLSConfig = secret }
	swallowed := func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case <-ctx.Done():
			case <-t.Context().Done():
			}
			return nil, context.DeadlineExceeded
		}
	}
	cluster := func(addr string, c *tls.Config) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, TLSConfig: c, DialTimeout: dialling, DialerRetries: 1, PoolSize: many, PipelinePoolSize: many})
	}
	sentinel := func(addr string, c *tls.Config) redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{addr}, TLSConfig: c, DialTimeout: dialling, DialerRetries: 1, PoolSize: many, PipelinePoolSize: many})
	}
	var all sync.WaitGroup
	for name, c := range map[string]struct {
		client redis.UniversalClient
		tells  []string // the line of the outage, and the error of a call then
	}{
		"refused":                   {at(nobody, nil), []string{nobody, "connection refused"}},
		"no such name":              {at("redis.invalid:6379", nil), []string{"lookup redis.invalid"}},
		"TLS, plain port":           {at(plain, encrypted), []string{plain, reachedTLS}},
		"TLS, other service":        {at(http, encrypted), []string{http, "tls: ", isTLS}},
		"TLS, hangs up":             {at(hangsUp, encrypted), []string{hangsUp, isTLS}},
		"unknown signer":            {at(private, func(o *redis.Options) { o.TLSConfig = &tls.Config{ServerName: "redis"} }), []string{private, "x509: "}},
		"plain, TLS port":           {at(private, nil), []string{private, isPlain}},
		"SSH":                       {at(ssh, nil), []string{ssh, "SSH-2.0", isPlain}},
		"HTTP":                      {at(http, nil), []string{http, "HTTP/1.1", isPlain}},
		"hangs up":                  {at(hangsUp, nil), []string{hangsUp, isPlain + ", and not in protected mode?)"}},
		"mute":                      {at(mute, nil), []string{mute, reachedPlain}},
		"black hole":                {at("10.0.0.1:6379", swallowed), []string{"10.0.0.1:6379", reachedPlain}},
		"wrong password":            {at(plain, func(o *redis.Options) { o.Password = "not this one" }), []string{"WRONGPASS"}},
		"no password":               {at(plain, func(o *redis.Options) { o.Password = "" }), []string{"unauthenticated", "the server wants a password"}},
		"cluster, refused":          {cluster(nobody, nil), []string{nobody, "connection refused"}},
		"cluster, TLS, plain port":  {cluster(plain, secret), []string{plain, reachedTLS}},
		"Sentinel, refused":         {sentinel(nobody, nil), []string{"Sentinel's master", nobody, "connection refused"}},
		"Sentinel, TLS, plain port": {sentinel(plain, secret), []string{"Sentinel's master", reachedTLS}},
	} {
		all.Go(func() {
			t.Run(name, func(t *testing.T) { // each takes seconds, and nearly no CPU
				t.Cleanup(func() { _ = c.client.Close() })
				var wrong []string
				for range 3 { // a machine that stands still makes a silence of what fails
					if wrong = toldWrong(t, c.client, c.tells, strings.HasSuffix(name, " password")); wrong == nil {
						return
					}
				}
				t.Error(strings.Join(wrong, "\n"))
			})
		})
	}
	all.Wait()
}

// toldWrong has calls of a new manager fail, and returns what the line of the outage and their errors lack of texts. If they are
// refused, there is no line.
func toldWrong(t *testing.T, client redis.UniversalClient, texts []string, refused bool) (wrong []string) {
	log, option := locktest.Logged()
	m, err := holdfast.New(client, option)
	redistest.Must(t, err)
	defer func() { _ = m.Close(context.Background()) }()
	const outage = "WARN holdfast: redis does not answer"
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		_, err := m.Mutex("x").Lock(ctx)
		locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
		return err
	}
	lines := 1
	if refused {
		lines = 0
		// The process would tell of an outage after a second.
		for begun := time.Now(); time.Since(begun) < 1500*time.Millisecond; time.Sleep(100 * time.Millisecond) {
			_ = ask()
		}
	} else {
		redistest.Eventually(t, locktest.Patience, "the outage is told", func() bool { _ = ask(); return len(log.With(outage)) > 0 })
	}
	_, tried := m.Mutex("y").TryLock(t.Context())
	locktest.WantErr(t, tried, holdfast.ErrUnavailable, nil)
	waited := ask()
	for _, text := range texts {
		if all := log.With(outage); len(all) != lines || !refused && !strings.Contains(all[0], text) {
			wrong = append(wrong, fmt.Sprintf("the outage is %q, want %d lines with %q", all, lines, text))
		}
		for _, err := range []error{tried, waited} {
			if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "no reply: "+text) {
				wrong = append(wrong, fmt.Sprintf("%v does not tell %q", err, text))
			}
		}
	}
	return wrong
}

// nobodyAt returns an address that refuses connections. It is the near end of a connection: as long as that is open, no
// server of another test gets this port.
func nobodyAt(t *testing.T) string {
	c, err := net.Dial("tcp", listens(t, says("", true)))
	redistest.Must(t, err)
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().String()
}
