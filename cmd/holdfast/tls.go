package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/urfave/cli/v3"

	"github.com/holdfast-go/holdfast/internal/command"
)

// encryption is what the flags say of TLS, with the names that redis-cli has for them. It holds for URLs with rediss.
type encryption struct {
	cert, key, cacert string // files
	insecure          bool
}

func tlsFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cert", Sources: cli.EnvVars("HOLDFAST_CERT"), Usage: "with TLS, show the server the client certificate of `FILE`"},
		&cli.StringFlag{Name: "key", Sources: cli.EnvVars("HOLDFAST_KEY"), Usage: "the private key of --cert is in `FILE`"},
		&cli.StringFlag{Name: "cacert", Sources: cli.EnvVars("HOLDFAST_CACERT"), Usage: "trust the authorities of `FILE`, instead of those of the system"},
		&cli.BoolFlag{Name: "insecure", Usage: "do not check the server's certificate"},
	}
}

func encryptionOf(c *cli.Command) encryption {
	return encryption{c.String("cert"), c.String("key"), c.String("cacert"), c.Bool("insecure")}
}

// flags is e for another process of this program.
func (e encryption) flags() []string {
	return []string{"--cert=" + e.cert, "--key=" + e.key, "--cacert=" + e.cacert, fmt.Sprintf("--insecure=%t", e.insecure)}
}

// apply completes what a URL says of TLS; nil: it is without. Each server is checked by its own name.
func (e encryption) apply(c *tls.Config) error {
	if c == nil {
		return nil
	}
	c.ServerName, c.InsecureSkipVerify = "", c.InsecureSkipVerify || e.insecure
	if e.cert != "" || e.key != "" {
		if e.cert == "" || e.key == "" {
			return errors.New("needs --key with --cert, and --cert with --key")
		}
		pair, err := tls.LoadX509KeyPair(e.cert, e.key)
		if err != nil {
			return fmt.Errorf("cannot be used with --cert and --key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if e.cacert != "" {
		text, err := os.ReadFile(e.cacert)
		if err != nil {
			return fmt.Errorf("cannot be used with --cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return errors.New("cannot be used with --cacert: there is no certificate in that file")
		}
	}
	return nil
}

// probeTime bounds a look at what a port speaks, as --timeout does.
const probeTime = 3 * time.Second

// cause says why a server does not answer, and what to type. The words of the library ask whether the choice of TLS is
// wrong. Here the port is asked.
func cause(given string, client redis.UniversalClient, timeout time.Duration, err error) error {
	if err == nil {
		return nil
	}
	scheme, addr := firstAddr(given)
	within := min(timeout, probeTime)
	encrypted := strings.HasPrefix(scheme, "rediss")
	if encrypted && command.HangsUp(err) {
		if alert := alertOf(addr, client, within); alert != nil {
			err = alert
		}
	}
	switch text := err.Error(); {
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: handshake failure"):
		return fmt.Errorf("%s: %w: the server wants a client certificate that it trusts: use --cert and --key", addr, err)
	case isAlert(err) && strings.Contains(text, "certificate"):
		return fmt.Errorf("%s: %w: the server does not accept the client's certificate: see --cert and --key", addr, err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("%s: %w: name the file with the certificate of its authority by --cacert", addr, err)
	case errors.As(err, new(*tls.CertificateVerificationError)): // expired, or of another host: it says which
		return fmt.Errorf("%s: %w", addr, err)
	case addr == "" || errors.As(err, new(redis.Error)):
	case encrypted && speaksRedis(addr, within):
		return fmt.Errorf("%s: the server does not speak TLS: use %s://", addr, strings.Replace(scheme, "rediss", "redis", 1))
	case !encrypted && speaksTLS(addr, within):
		return fmt.Errorf("%s: the server expects TLS: use %s://", addr, strings.Replace(scheme, "redis", "rediss", 1))
	}
	return command.Cause(client, err)
}

// alertOf returns what a server has against the TLS of client; nil: nothing, or no time was left. A server refuses a certificate after its client
// takes the connection for made, so that a client that writes then can lose the reason with the connection. Here nothing is written.
func alertOf(addr string, client redis.UniversalClient, within time.Duration) error {
	var config *tls.Config
	switch c := client.(type) {
	case *redis.Client:
		config = c.Options().TLSConfig
	case *redis.ClusterClient:
		config = c.Options().TLSConfig
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: within}, "tcp", addr, config)
	if err == nil {
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(within))
		_, err = conn.Read(make([]byte, 1))
	}
	if !isAlert(err) {
		return nil
	}
	return err
}

// isAlert reports whether err is what the other side of a TLS connection has against it.
func isAlert(err error) bool {
	return err != nil && strings.Contains(err.Error(), "remote error: tls: ")
}

// speaksRedis reports whether a port answers as Redis does without TLS.
func speaksRedis(addr string, within time.Duration) bool {
	conn, err := net.DialTimeout("tcp", addr, within)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(within))
	_, _ = conn.Write([]byte("PING\r\n"))
	first := make([]byte, 1)
	_, err = conn.Read(first)
	return err == nil && (first[0] == '+' || first[0] == '-')
}

// speaksTLS reports whether a port answers a TLS handshake, whatever it says of certificates.
func speaksTLS(addr string, within time.Duration) bool {
	_, err := tls.DialWithDialer(&net.Dialer{Timeout: within}, "tcp", addr, &tls.Config{InsecureSkipVerify: true})
	return err == nil || errors.As(err, new(tls.AlertError)) || isAlert(err)
}
