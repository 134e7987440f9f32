"""RACE's static criteria: what a good research report shows whatever its task, in our own words, English and Chinese.

Used by the variant `static_criteria`, and proposed by the lexical judge for tasks that come without criteria.
"""

from collections.abc import Mapping

__all__ = ["GENERAL_CRITERIA"]

# Dimension: (criterion, explanation, weight); the weights of a dimension sum to 1.
_EN = {
    "comprehensiveness": (
        (
            "Covers every part of the question",
            "Each sub-question, region, period or group that the task names is treated.",
            0.3,
        ),
        (
            "Gives the necessary background",
            "Terms, history and conditions without which the findings cannot be understood.",
            0.15,
        ),
        (
            "Supports its statements with data and cases",
            "Figures with units and dates, named examples, concrete findings.",
            0.25,
        ),
        (
            "Shows more than one perspective",
            "Competing views, affected parties and counter-evidence have their place.",
            0.15,
        ),
        (
            "Draws on different kinds of sources",
            "Primary data, research, official and independent voices; not one single source.",
            0.15,
        ),
    ),
    "insight": (
        (
            "Explains causes and mechanisms",
            "Says why things are as they are and how one leads to another, beyond description.",
            0.3,
        ),
        ("Weighs the evidence", "Tells strong from weak evidence, and says what contradicts what.", 0.2),
        (
            "Connects findings into conclusions of its own",
            "Compares, ranks or combines what was found into something no source states.",
            0.2,
        ),
        (
            "Looks ahead with reasons",
            "Trends, risks and consequences follow from the analysis and name their conditions.",
            0.15,
        ),
        (
            "Is useful for a decision",
            "Recommendations are specific, justified and ordered by importance.",
            0.15,
        ),
    ),
    "instruction_following": (
        (
            "Answers the question that was asked",
            "The core of the task has a direct answer that is easy to find.",
            0.35,
        ),
        ("Respects the limits of the task", "Time, place, subject and exclusions are kept.", 0.2),
        (
            "Delivers the requested form",
            "Tables, lists, comparisons, length or structure are as the task wants them.",
            0.2,
        ),
        ("Treats all listed points", "Nothing that the task enumerates is left out or only named.", 0.15),
        ("Stays on topic", "No sections that the task has no use for.", 0.1),
    ),
    "readability": (
        ("Has a clear structure", "Headings and order lead the reader; each section has one purpose.", 0.3),
        (
            "Is written clearly and correctly",
            "Plain, precise sentences without errors or empty phrases.",
            0.25,
        ),
        ("Presents data well", "Tables, lists and figures where they help, with units and labels.", 0.2),
        (
            "Explains its terms",
            "Technical words are defined or evident for the reader the task implies.",
            0.1,
        ),
        ("Is concise and consistent", "No repetition, no contradiction, the same names throughout.", 0.15),
    ),
}

_ZH = {
    "comprehensiveness": (
        ("覆盖问题的各个部分", "任务提到的每个子问题、地区、时期或群体都有论述。", 0.3),
        ("交代必要的背景", "说明理解结论所需的概念、历史和条件。", 0.15),
        ("以数据和案例支撑论述", "给出带单位和日期的数字、有名有姓的例子和具体发现。", 0.25),
        ("呈现不止一种视角", "不同观点、相关各方和反面证据都有位置。", 0.15),
        ("采用多种类型的资料", "兼用一手数据、研究成果、官方与独立来源，而非单一来源。", 0.15),
    ),
    "insight": (
        ("解释原因与机制", "不止于描述，说明为何如此、如何一步步导致结果。", 0.3),
        ("权衡证据的强弱", "区分可靠与薄弱的证据，指出相互矛盾之处。", 0.2),
        ("把发现归纳成自己的结论", "通过比较、排序或综合，得出任何单一来源都没有直接给出的判断。", 0.2),
        ("有依据地展望未来", "趋势、风险和后果由分析推出，并写明前提条件。", 0.15),
        ("对决策有用", "建议具体、有理由，并按重要程度排列。", 0.15),
    ),
    "instruction_following": (
        ("正面回答所提的问题", "任务的核心有直接而醒目的答案。", 0.35),
        ("遵守任务限定的范围", "时间、地域、对象和排除项都得到遵守。", 0.2),
        ("按要求的形式交付", "表格、清单、对比、篇幅或结构符合任务要求。", 0.2),
        ("逐一处理列出的要点", "任务列举的内容没有遗漏，也不是一笔带过。", 0.15),
        ("不偏离主题", "没有与任务无关的章节。", 0.1),
    ),
    "readability": (
        ("结构清晰", "标题和顺序引导读者，每一节只有一个目的。", 0.3),
        ("语言清楚准确", "句子通顺、精确，没有错误和空话。", 0.25),
        ("数据呈现得当", "在有帮助之处使用表格、列表和图示，并注明单位和名称。", 0.2),
        ("解释术语", "专业词语有定义，或对目标读者不言自明。", 0.1),
        ("简洁一致", "没有重复和自相矛盾，名称前后统一。", 0.15),
    ),
}

GENERAL_CRITERIA: Mapping[str, Mapping[str, tuple[tuple[str, str, float], ...]]] = {"en": _EN, "zh": _ZH}
"""Language (en, zh), then dimension, to (criterion, explanation, weight)."""
