"""The bill of materials of trimtab in CycloneDX 1.6: every package and jar, with version, checksum and licence.

The same locks give the same bytes: it has no time, and its serial number is made of its content.
"""

import json
import tomllib
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from controller.adapters.disk import jars
from controller.adapters.disk.places import SHIPPED
from controller.cli.shared.common_options import own_version
from tests.supply_chain.materials import JARS_NEEDED, Package, dependencies, own_licence, packages

_FORMAT: Final = "CycloneDX"
_VERSION: Final = "1.6"
#: Of the jars that a controller needs, by organisation; those that only tests use are listed without one.
JAR_LICENCES: Final = {
    "org.apache.commons": "Apache-2.0",
    "org.apache.kafka": "Apache-2.0",
    "org.apache.spark": "Apache-2.0",
}


def bill() -> dict[str, Any]:
    """The bill, as its JSON has it."""
    found = packages()
    own = f"pkg:pypi/trimtab@{own_version()}"
    purls = {each.name: _purl(each) for each in found}
    made = {
        "bomFormat": _FORMAT,
        "specVersion": _VERSION,
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "trimtab",
                "version": own_version(),
                "licenses": [_licence(own_licence())],
                "purl": own,
            }
        },
        "components": [*map(_package, found), *_jars()],
        "dependencies": [
            {"ref": own, "dependsOn": [purls[name] for name in dependencies()]},
            *({"ref": purls[each.name], "dependsOn": [purls[name] for name in each.depends_on]} for each in found),
        ],
    }
    return {**made, "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, json.dumps(made, sort_keys=True))}"}


def _purl(package: Package) -> str:
    return f"pkg:pypi/{package.name}@{package.version}"


def _package(package: Package) -> dict[str, Any]:
    files = {
        "type": "distribution",
        "url": f"https://pypi.org/project/{package.name}/{package.version}/",
        "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
    }
    licences = {"licenses": [_licence(package.licence)]} if package.licence else {}
    return {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package.name,
        "version": package.version,
        "scope": package.scope,
        **licences,
        "purl": _purl(package),
        "externalReferences": [files],
    }


def _licence(expression: str) -> dict[str, Any]:
    return {"expression": expression} if " " in expression else {"license": {"id": expression}}


def _jars() -> list[dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    sets = tomllib.loads((SHIPPED / "jars.lock").read_text(encoding="utf-8"))
    # Those that are needed come first: a jar may be in several sets.
    for name in sorted(sets, key=lambda each: (each not in JARS_NEEDED, each)):
        for jar in jars.read_lock(name):
            kind = f"?classifier={jar.classifier}&type={jar.extension}" if jar.classifier else f"?type={jar.extension}"
            purl = f"pkg:maven/{jar.organisation}/{jar.name}@{jar.revision}{kind}"
            licence = JAR_LICENCES.get(jar.organisation, "") if name in JARS_NEEDED else ""
            made.setdefault(
                purl,
                {
                    "type": "library",
                    "bom-ref": purl,
                    "group": jar.organisation,
                    "name": jar.name,
                    "version": jar.revision,
                    "scope": "required" if name in JARS_NEEDED else "excluded",
                    "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
                    **({"licenses": [{"license": {"id": licence}}]} if licence else {}),
                    "purl": purl,
                },
            )
    return list(made.values())
