//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// authority signs certificates. Its own is in the file ca.
type authority struct {
	dir, ca string
	key     *ecdsa.PrivateKey
	cert    *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.ca, a.key, a.cert = a.issue(t, "ca", time.Now().Add(time.Hour))
	return a
}

// issue writes NAME.crt and NAME.key. The first certificate is the authority's own.
func (a *authority) issue(t *testing.T, name string, end time.Time) (file string, key *ecdsa.PrivateKey, cert *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	cert = &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: end,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: a.key == nil, BasicConstraintsValid: true,
	}
	signer, by := cert, key
	if a.key != nil {
		signer, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, signer, key.Public(), by)
	must(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	file = filepath.Join(a.dir, name)
	for suffix, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: secret}} {
		must(t, os.WriteFile(file+suffix, pem.EncodeToMemory(block), 0o600))
	}
	cert, err = x509.ParseCertificate(der)
	must(t, err)
	return file + ".crt", key, cert
}

// files are the flags that name what issue has written.
func (a *authority) files(name string) []string {
	return []string{"--cert=" + filepath.Join(a.dir, name+".crt"), "--key=" + filepath.Join(a.dir, name+".key")}
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// A server that wants client certificates is reached with one. What is wrong with a certificate, or with the choice of TLS, is
// named together with what to type.
func TestTLS_OfAServer(t *testing.T) {
	t.Parallel()
	ours, other := newAuthority(t), newAuthority(t)
	ours.issue(t, "server", time.Now().Add(time.Hour))
	ours.issue(t, "client", time.Now().Add(time.Hour))
	other.issue(t, "client", time.Now().Add(time.Hour))
	port := freePort(t)
	srv := redistest.Start(t, redistest.WithArgs("--tls-port", port, "--tls-cert-file", filepath.Join(ours.dir, "server.crt"),
		"--tls-key-file", filepath.Join(ours.dir, "server.key"), "--tls-ca-cert-file", ours.ca, "--tls-auth-clients", "yes"))
	at := func(scheme, addr string) string { return fmt.Sprintf("%s://:%s@%s", scheme, srv.Password(), addr) }
	encrypted, ca, client := "127.0.0.1:"+port, "--cacert="+ours.ca, ours.files("client")
	late := listensTLS(t, ours, "late", time.Now().Add(-time.Hour), nil)
	for name, c := range map[string]struct {
		url    string
		flags  []string
		env    []string
		status int
		says   string
	}{
		"with all":            {at("rediss", encrypted), append(client, ca), nil, 0, ""},
		"from variables":      {at("rediss", encrypted), nil, []string{"HOLDFAST_CACERT=" + ours.ca, "HOLDFAST_CERT=" + client[0][len("--cert="):], "HOLDFAST_KEY=" + client[1][len("--key="):]}, 0, ""},
		"unchecked":           {at("rediss", encrypted), append(client, "--insecure"), nil, 0, ""},
		"no certificate":      {at("rediss", encrypted), []string{ca}, nil, exitUnreachable, "the server wants a client certificate that it trusts: use --cert and --key"},
		"another's":           {at("rediss", encrypted), append(other.files("client"), ca), nil, exitUnreachable, "--cert and --key"},
		"unknown authority":   {at("rediss", encrypted), client, nil, exitUnreachable, "by --cacert"},
		"another host":        {at("rediss", "localhost:"+port), append(client, ca), nil, exitUnreachable, "match localhost"},
		"expired":             {at("rediss", late), append(client, ca), nil, exitUnreachable, "expired"},
		"no key":              {at("rediss", encrypted), client[:1], nil, exitUsage, "needs --key with --cert"},
		"no such file":        {at("rediss", encrypted), []string{ca + "x"}, nil, exitUsage, "--cacert: open "},
		"plain port":          {at("rediss", srv.Addr()), []string{ca}, nil, exitUnreachable, "the server does not speak TLS: use redis://"},
		"TLS port":            {at("redis", encrypted), nil, nil, exitUnreachable, "the server expects TLS: use rediss://"},
		"plain port, cluster": {at("rediss+cluster", srv.Addr()), []string{ca}, nil, exitUnreachable, "the server does not speak TLS: use redis+cluster://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInvocation(t, append([]string{"ls"}, c.flags...)...)
			i.Env = append(i.Env, append(c.env, "HOLDFAST_REDIS="+c.url)...)
			must(t, i.Start())
			status := i.wait(t)
			if stderr := i.stderr.String(); status != c.status || !strings.Contains(stderr, c.says) || strings.Contains(stderr, srv.Password()) {
				t.Errorf("exit status %d, %q, want %d, %q", status, stderr, c.status, c.says)
			}
		})
	}
}

// A server that does not accept a certificate may hang up on a client that has written before it read why.
func TestTLS_ServerHangsUp(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	ours.issue(t, "client", time.Now().Add(time.Hour))
	addr := listensTLS(t, ours, "server", time.Now().Add(time.Hour), make(chan struct{}, 1))
	for flags, refused := range map[encryption]bool{
		{cacert: ours.ca}: true,
		{cacert: ours.ca, cert: filepath.Join(ours.dir, "client.crt"), key: filepath.Join(ours.dir, "client.key")}: false,
	} {
		config := new(tls.Config)
		must(t, flags.apply(config))
		client := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: config})
		t.Cleanup(func() { _ = client.Close() })
		err := cause("rediss://"+addr, client, time.Second, &net.OpError{Op: "write", Err: syscall.ECONNRESET})
		if strings.Contains(err.Error(), "wants a client certificate") != refused {
			t.Errorf("%+v: %v", flags, err)
		}
	}
}

// listensTLS returns the address of a server that has the named certificate and shakes hands only; got, if it is not nil, gets
// a value for each client with a certificate of the authority.
func listensTLS(t *testing.T, a *authority, name string, end time.Time, got chan<- struct{}) string {
	t.Helper()
	file, _, _ := a.issue(t, name, end)
	pair, err := tls.LoadX509KeyPair(file, strings.TrimSuffix(file, ".crt")+".key")
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool}
	if got != nil {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if conn.(*tls.Conn).Handshake() == nil && got != nil {
				select {
				case got <- struct{}{}:
				default:
				}
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// The certificate is shown by clients of all kinds.
func TestTLS_CertificateOfEachKindOfURL(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, _, _ := a.issue(t, "client", time.Now().Add(time.Hour))
	e := encryption{cert: cert, key: strings.TrimSuffix(cert, ".crt") + ".key", cacert: a.ca}
	for _, u := range []string{"rediss://%s", "rediss+cluster://%s,%[1]s", "rediss+sentinel://%s,%[1]s/m"} {
		got := make(chan struct{}, 1)
		client, err := openClient(fmt.Sprintf(u, listensTLS(t, a, "server", time.Now().Add(time.Hour), got)), patience, e)
		must(t, err)
		go client.Ping(t.Context())
		select {
		case <-got:
		case <-time.After(patience):
			t.Errorf("%s: no certificate", u)
		}
		_ = client.Close()
	}
}
