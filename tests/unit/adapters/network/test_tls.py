"""TLS of trimtab's own connections."""

import ssl

from controller.adapters.network.tls import Tls


def test_whatever_python_runs_it_certificates_are_checked_as_librdkafka_and_java_check_them() -> None:
    context = Tls().context()
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT, "authorities without a key usage are refused"
