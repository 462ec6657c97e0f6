"""The words of boxes that ask for consent to cookies: on their buttons, and in their sentences.

A page on cookies has the same nouns. Only a box that asks has answers on its buttons, and says that its own
site uses cookies. A button with any other word (`Reply`, `Print`, `Add to basket`) belongs to something else.
In a language without words here such a box stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_COOKIE_WORDS = (
    "cookie",
    "куки",
    "クッキー",
    "쿠키",
    "çerez",
    "evästei",
    "ciasteczk",
    "ملفات تعريف الارتباط",
)
_COOKIE = re.compile("|".join(_COOKIE_WORDS), re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?。！？\n]+")

# Beginnings of words; `$` marks a whole one.
_ANSWERS = """
accept agree allow consent ok$ okay got$ understand understood reject declin deny$ refus dismiss
akzeptier zustimm einverstanden verstanden annehmen ablehn erlauben zulassen
autoris accord$ compris acept rechaz permit entendido acuerdo accett rifiut acconsent capito
aceit rejeit recus concord entendi weiger toesta akkoord begrepen
akceptuj zaakcept zgadzam odrzu rozumiem принять прин согла понятно отклон разреш прийня погодж відхил
přijm souhlas odmít rozumím prija prijí godkänn tillåt avvisa förstår godta tillad tillat afvis avvis
hyväks salli hylkää kabul reddet tamam$ elfogad αποδοχή αποδέχ απόρριψη συμφων موافق قبول أوافق رفض
"""
_ANSWERS_WITHOUT_SPACES = (
    "同意 承諾 許可 拒否 了解 承知 接受 允许 允許 拒绝 拒絕 知道 동의 허용 수락 거부 확인"
)
_BESIDE_ANSWERS = """
cookie куки çerez evästei gdpr all$ only$ select necessary needed essential required optional settings
preferences options manage custom choose choice close more$ learn info detail policy privacy partner vendor
save yes$ no$ x$ i$ my$ the$ and$ what$ is$ to$ this$ use$ our$ it$ everything function continue without
alle ich nur auswahl ausgewählte notwendig einstellung mehr erfahren schließen datenschutz speichern und ja$
nein$ tout tous$ toutes$ et$ je$ j$ d$ paramètr paramétr personnalis savoir plus$ fermer gérer continuer
oui$
non$ sans$ todo toda y$ config más$ saber cerrar rechazo de$ sí$ tutt impostazioni personalizza chiudi
scopri
più solo$ tudo defini saiba mais$ fechar alles instellingen meer$ sluiten nee$ wszystk ustawienia więcej
zamknij nie$ tak$ всё все настро подробн закрыть только да$ нет$ усі налашт vše nastavení více zavřít alla
inställningar mer$ stäng indstillinger innstillinger luk$ lukk kaikki asetukset tümünü ayar kapat fájl όλα
"""
_BESIDE_WITHOUT_SPACES = """
クッキー 쿠키 すべて 全て 全部 設定 设置 設置 閉じる 关闭 關閉 必要 のみ する して います 我 所有 모두
설정 닫기 합니다
"""
_SITES = """
we$ our$ site$ website$ webpage$ page$ partners wir$ unser webseite seite nous$ notre site nosotros nuestr
sitio noi$ nostr sito nós$ nosso wij$ onze$ strona nasz serwis мы$ наш сайт ми$ vi$ vår webbplats vores
hjemmeside sivusto sitemiz stránk naše webové
"""
_USES = """
use$ uses$ using$ store$ stores$ verwend nutz einsetz einsatz utilis utiliz usa$ usan$ gebruik używ
korzysta wykorzyst использ примен обрабат використ använd bruger bruker käyt
kullan použív
"""
_SITES_THAT_USE = """
utilizamos usamos utilizziamo usiamo używamy korzystamy wykorzystujemy používáme käytämme
kullanıyoruz kullanmaktayız
"""
_SITE_WITHOUT_SPACES = re.compile("当サイト|弊社|本サイト|私たち|我们|我們|本网站|本網站|우리|사이트")
_USE_WITHOUT_SPACES = re.compile("使用|利用|사용|이용")


_NEUTRAL = "yes$ no$ x$ ja$ nein$ nej$ nee$ oui$ non$ sí$ si$ sì$ sim$ não$ tak$ nie$ да$ нет$"
_NEUTRAL_WITHOUT_SPACES = "はい いいえ 是 否 네 아니요"
_PRIVACY_WORDS = """
privacy datenschutz confidentialité privacidad privacidade riservatezza prywatnoś integritet yksityisyy
gizlilik
конфиденциальност конфіденційн персональн プライバシー 个人信息 隐私 隱私 개인정보
"""


def _words(beginnings: str, without_spaces: str = "") -> re.Pattern[str]:
    ends = {True: r"\b", False: r"\w*"}
    words = [re.escape(word.removesuffix("$")) + ends[word.endswith("$")] for word in beginnings.split()]
    return re.compile("|".join([rf"\b(?:{'|'.join(words)})", *without_spaces.split()]), re.IGNORECASE)


_ANSWER = _words(_ANSWERS, _ANSWERS_WITHOUT_SPACES)
_ON_SUCH_BUTTONS = _words(_ANSWERS + _BESIDE_ANSWERS, f"{_ANSWERS_WITHOUT_SPACES} {_BESIDE_WITHOUT_SPACES}")
_YES_OR_NO = _words(_NEUTRAL, _NEUTRAL_WITHOUT_SPACES)
_PRIVACY = re.compile("|".join(_PRIVACY_WORDS.split()), re.IGNORECASE)
_SITE = _words(_SITES)
_USE = _words(_USES)
_SITE_THAT_USES = _words(_SITES_THAT_USE)


def names_cookies(text: str) -> bool:
    """Whether a text has a word for cookies."""
    return _COOKIE.search(text) is not None


def is_on_cookies(headline: str) -> bool:
    """Whether a text below this headline is on cookies or privacy."""
    return names_cookies(headline) or _PRIVACY.search(headline) is not None


def answer_consent(labels: Iterable[str]) -> bool:
    """Whether buttons with these labels give consent or refuse it (`Accept all`), and do nothing else."""
    texts = list(labels)
    return any(map(_ANSWER.search, texts)) and not any(
        _has_letters(_ON_SUCH_BUTTONS.sub("", text)) for text in texts
    )


def say_nothing(labels: Iterable[str]) -> bool:
    """Whether the labels are signs, `yes` and `no`, which any question may have."""
    return not any(_has_letters(_YES_OR_NO.sub("", label)) for label in labels)


def site_uses_cookies(text: str) -> bool:
    """Whether a sentence of a text says that its site uses cookies."""
    return any(names_cookies(sentence) and _says_use(sentence) for sentence in _SENTENCE_END.split(text))


def _says_use(sentence: str) -> bool:
    if _SITE_THAT_USES.search(sentence) or (_SITE.search(sentence) and _USE.search(sentence)):
        return True
    site = _SITE_WITHOUT_SPACES.search(sentence)
    return site is not None and _USE_WITHOUT_SPACES.search(sentence) is not None


def _has_letters(text: str) -> bool:
    return any(letter.isalpha() for letter in text)
