"""Redaction: secrets go, wherever and however they are written; what is no secret stays as it is."""

from __future__ import annotations

import json

import pytest

from harness.redaction import is_secret, redact, redact_json, secrets_in, secrets_of_settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'s3.secret-key' = 'a1b2c3d4'", "'s3.secret-key' = '***'"),
        ("s3.secret-key: a1b2c3d4", "s3.secret-key: ***"),
        ("s3.access-key=a1b2c3d4, s3.path=x", "s3.access-key=***, s3.path=x"),
        ("fs.s3a.secret.key=a/b+c=", "fs.s3a.secret.key=***"),
        (
            "Loading configuration property: s3.access-key, abc123",
            "Loading configuration property: s3.access-key, ***",
        ),
        ("MYSQL_ROOT_PASSWORD=hunter2 mysqld", "MYSQL_ROOT_PASSWORD=*** mysqld"),
        ("export MYSQL_PWD=hunter2", "export MYSQL_PWD=***"),
        ("'password' = 'it''s long'", "'password' = '***'"),
        ('password: "a\\"b" c', 'password: "***" c'),
        ('password: "not ended\nnext', 'password: "***\nnext'),
        ('{"secretKey": "a1b2c3d4", "n": 1}', '{"secretKey": "***", "n": 1}'),
        (r"{\"password\": \"a1b2\", \"n\": 1}", r"{\"password\": \"***\", \"n\": 1}"),
        ("mysql --password=hunter2 -h source", "mysql --password=*** -h source"),
        ("mysql --password hunter2 -h source", "mysql --password *** -h source"),
        ("CREATE USER cdc@'%' IDENTIFIED BY 'hunter2'", "CREATE USER cdc@'%' IDENTIFIED BY '***'"),
        ("ALTER USER r IDENTIFIED WITH native AS '*81F5'", "ALTER USER r IDENTIFIED WITH native AS '***'"),
        ("jdbc:mysql://root:hunter2@source:3306/shop", "jdbc:mysql://root:***@source:3306/shop"),
        ("http://:hunter2@proxy:3128", "http://:***@proxy:3128"),
        ("https://ghx0123456789@host/x", "https://***@host/x"),
        ("key AKIAIOSFODNN7EXAMPLE was refused", "key *** was refused"),
        ("AWS4-HMAC-SHA256 Signature=9f86d081884c", "AWS4-HMAC-SHA256 Signature=***"),
        ("Authorization: Bearer eyJhbGci.x.y", "Authorization: Bearer ***"),
        ("user harness0a1b2c3d put x", "user *** put x"),
        ("as cdc / cdc-20260706-101500-acceptance-ab12.", "as cdc / ***."),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----",
        ),
    ],
)
def test_a_secret_is_replaced_and_its_name_stays(text: str, expected: str) -> None:
    done = redact(text)

    assert expected == done.text
    assert done.places >= 1


@pytest.mark.parametrize(
    "text",
    [
        "Access denied for user 'root'@'10.0.0.1' (using password: YES)",
        "Loading configuration property: s3.secret-key, ******",
        "password = ${source_password}",
        "at com.amazonaws.http.AmazonHttpClient$RequestExecutor.access$500(AmazonHttpClient.java:715)",
        "fs.s3a.aws.credentials.provider: org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "Association with [pekko.tcp://flink-metrics@jobmanager:43047] has failed",
        "PWD=/opt/flink OLDPWD=/",
        "dt=2026-07-01 order_id=17 source_key=order_id",
        "http://127.0.0.1:8081/jobs/a1b2",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    done = redact(text)

    assert (text, 0) == (done.text, done.places)


def test_a_known_secret_goes_wherever_it_stands_in_every_spelling() -> None:
    done = redact('a"b&c9 a\\"b&c9 a&quot;b&amp;c9 x', known=['a"b&c9'])

    assert ("*** *** *** x", 3) == (done.text, done.places)


def test_of_two_known_secrets_the_longer_one_goes_whole() -> None:
    assert "*** ***" == redact("abcd1234efgh abcd1234", known=["abcd1234", "abcd1234efgh"]).text


def test_a_long_value_beside_a_secret_name_is_known_from_then_on_a_plain_word_is_not() -> None:
    text = "password: incorrect\ns3.secret-key: 0123abcd4567\npassword=ab1\nhttp://u:pass-word-9@h"

    assert {"0123abcd4567", "pass-word-9"} == secrets_in(text)


def test_json_stays_json_and_loses_the_values_of_secret_names_and_of_key_value_pairs() -> None:
    content = {
        "settings": [
            {"scope": "cluster", "key": "s3.secret-key", "value": "shrt"},
            {"scope": "job", "key": "parallelism.default", "value": "2"},
        ],
        "password": "x",
        "said": 'root:\n MYSQL_ROOT_PASSWORD="a b c" done',
        "count": 7,
        "key": "order_id",
    }
    done = redact_json(json.dumps(content))

    expected = {
        "settings": [
            {"scope": "cluster", "key": "s3.secret-key", "value": "***"},
            {"scope": "job", "key": "parallelism.default", "value": "2"},
        ],
        "password": "***",
        "said": 'root:\n MYSQL_ROOT_PASSWORD="***" done',
        "count": 7,
        "key": "order_id",
    }
    assert expected == json.loads(done.text)
    assert 3 == done.places


def test_json_without_a_secret_keeps_its_content() -> None:
    content = {"key": "order_id", "value": None, "list": [1, 2.5, True, "§ ü"]}
    done = redact_json(json.dumps(content))

    assert (content, 0) == (json.loads(done.text), done.places)


def test_the_secrets_of_settings_are_those_of_secret_names_only() -> None:
    content = [
        {"key": "s3.access-key", "value": "k1"},
        {"key": "a", "value": "v"},
        {"password": "p"},
        {"b": "w"},
    ]

    assert {"k1", "p"} == secrets_of_settings(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("s3.secret-key", True),
        ("MYSQL_ROOT_PASSWORD", True),
        ("fs.azure.account.key.x", True),
        ("fs.azure.account-key", True),
        ("source_key", False),
        ("key", False),
        ("s3.session-token", True),
    ],
)
def test_a_name_says_whether_its_value_is_a_secret(name: str, secret: bool) -> None:
    assert secret is is_secret(name)
