package holdfastcertmagic_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
	holdfastcertmagic "github.com/holdfast-go/holdfast/contrib/certmagic"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	domain     = "example.com"
	domainLock = "certmagic:issue_cert_" + domain
)

// authority issues certificates as a CA does, in place of ACME.
type authority struct {
	issuing func() error
}

func (a authority) IssuerKey() string { return "authority" }

func (a authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := a.issuing(); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{SerialNumber: serial, DNSNames: csr.DNSNames, NotBefore: time.Now(), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, csr.PublicKey, key)
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

// configure returns what manages certificates in a process, and what ends it.
func configure(s certmagic.Storage, issuing func() error) (cfg *certmagic.Config, stop func()) {
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil },
		Logger:           zap.NewNop(),
	})
	cfg = certmagic.New(cache, certmagic.Config{Storage: s, Issuers: []certmagic.Issuer{authority{issuing}}, Logger: zap.NewNop()})
	return cfg, cache.Stop
}

// serial is that of the certificate that cfg serves.
func serial(cfg *certmagic.Config) (string, error) {
	cert, err := cfg.CacheManagedCertificate(context.Background(), domain)
	if err != nil {
		return "", err
	}
	return cert.Leaf.SerialNumber.String(), nil
}

func TestMain(m *testing.M) {
	os.Exit(redistest.Main(m, map[string]func([]string){"server": func(args []string) {
		cfg, _ := configure(holdfastcertmagic.Wrap(&certmagic.FileStorage{Path: args[1]}, locktest.ManagerOfRole(args[0])), func() error {
			fmt.Println("issues")
			bufio.NewReader(os.Stdin).ReadString('\n')
			return nil
		})
		panicOn(cfg.ManageSync(context.Background(), []string{domain}))
		served, err := serial(cfg)
		panicOn(err)
		fmt.Println("serves", served)
		bufio.NewReader(os.Stdin).ReadString('\n')
	}}))
}

func panicOn(err error) {
	if err != nil {
		panic(err)
	}
}

// Of three processes the first one issues the certificate, which all serve.
func TestIssue_OnceInAll(t *testing.T) {
	srv, files := redistest.Start(t, redistest.WithoutPassword()), t.TempDir()
	locks := managerOn(t, srv)
	issuer := redistest.StartProcess(t, "server", srv.Addr(), files)
	issuer.Expect(t, "issues")
	a := redistest.StartProcess(t, "server", srv.Addr(), files)
	b := redistest.StartProcess(t, "server", srv.Addr(), files)
	locktest.AwaitWaiters(t, locks, domainLock, 2)
	issuer.Send("go on")
	serves := issuer.Expect(t, "serves")
	redistest.Want(t, a.Expect(t, "serves"), serves, "one process %q, the other %q")
	redistest.Want(t, b.Expect(t, "serves"), serves, "one process %q, the other %q")
}

// The next process issues the certificate when the lease of the killed one has ended.
func TestIssue_KilledProcess(t *testing.T) {
	srv, files := redistest.Start(t, redistest.WithoutPassword()), t.TempDir()
	locks := managerOn(t, srv)
	killed := redistest.StartProcess(t, "server", srv.Addr(), files)
	killed.Expect(t, "issues")
	next := redistest.StartProcess(t, "server", srv.Addr(), files)
	locktest.AwaitWaiters(t, locks, domainLock, 1)
	last := redistest.StartProcess(t, "server", srv.Addr(), files)
	locktest.AwaitWaiters(t, locks, domainLock, 2)
	dead := time.Now()
	killed.Kill()
	next.Expect(t, "issues")
	t.Logf("issues %v after the first process was killed, with a lease of a second", time.Since(dead))
	next.Send("go on")
	redistest.Want(t, last.Expect(t, "serves"), next.Expect(t, "serves"), "one process %q, the other %q")
}

// certmagic does not look at the lock while it issues. It goes on after a loss, and what it has issued is served.
func TestIssue_RedisAwayInTheMiddle(t *testing.T) {
	srv := redistest.Start(t)
	probe, err := managerOn(t, srv).Mutex("probe", holdfast.WithLease(time.Second)).Lock(t.Context()) // its lease is as long
	redistest.Must(t, err)
	cfg, stop := configure(holdfastcertmagic.Wrap(&certmagic.FileStorage{Path: t.TempDir()}, managerOn(t, srv), holdfast.WithLease(time.Second)), func() error {
		srv.Kill()
		<-probe.Done()
		return nil
	})
	defer stop()
	redistest.Must(t, cfg.ManageSync(t.Context(), []string{domain}))
	_, err = serial(cfg)
	redistest.Must(t, err)
	srv.Restart()
	redistest.Must(t, storageOn(t, srv).Lock(t.Context(), "issue_cert_"+domain))
}

// Between two attempts certmagic waits with the lock, for a minute at first. If the lease is lost meanwhile, the next attempt
// locks again. With an error it would fail, as all later attempts of 30 days.
func TestIssue_LostLeaseBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.NewServer(t)
		other := server.NewManager().Mutex(domainLock)
		attempts := 0
		cfg, stop := configure(holdfastcertmagic.Wrap(&certmagic.FileStorage{Path: t.TempDir()}, server.NewManager()), func() error {
			if attempts++; attempts == 1 {
				server.Lose(domainLock)
				return errors.New("the CA is away")
			}
			if lease, err := other.TryLock(t.Context()); err == nil {
				t.Error("the second attempt has no lock")
				lease.Unlock(t.Context())
			}
			return nil
		})
		defer stop()
		redistest.Must(t, cfg.ManageAsync(t.Context(), []string{domain}))
		time.Sleep(2 * time.Minute)
		redistest.Want(t, attempts, 2, "%d attempts, want %d")
		_, err := serial(cfg)
		redistest.Check(t, err)
		redistest.Want(t, len(server.Held()), 0, "%d locks are held")
	})
}
